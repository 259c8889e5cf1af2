package kernel

import (
	"testing"

	"heddle/tile"
)

// The order that kernels compute on the device is one that `heddle tile schedule` draws and estimates.
func TestOrdersAreThoseOfTheWorkbench(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {8, 8}, {13, 7}, {32, 16}, {5, 40}} {
		for _, c := range []struct {
			order Order
			tile  tile.Schedule
		}{
			{Order{}, tile.Schedule{Order: tile.Raster}},
			{Order{Group: 4}, tile.Schedule{Order: tile.Grouped, Group: 4}},
			{Order{Group: 3, Serpentine: true}, tile.Schedule{Order: tile.Serpentine, Group: 3}},
		} {
			c.tile.TilesM, c.tile.TilesN, c.tile.Fast = size[0], size[1], tile.AlongM
			for i, p := range tile.Must(c.tile.Path()) {
				if row, col := c.order.At(i, size[0], size[1]); row != p.M || col != p.N {
					t.Fatalf("%+v on %v: tile %d is (%d,%d), the workbench has (%d,%d)", c.order, size, i, row, col, p.M, p.N)
				}
			}
		}
	}
}
