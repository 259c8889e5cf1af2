package emulate_test

import (
	"testing"

	"heddle/ptx/conform"
	"heddle/ptx/emulate"
)

// Copies and products give what their definitions say.
func TestCopiesAndProductsAreAsDefined(t *testing.T) {
	check := func(p conform.Program, err error) {
		t.Helper()
		if err == nil {
			err = p.Check(emulate.Emulator{})
		}
		if err != nil {
			t.Error(err)
		}
	}
	for _, c := range conform.Copies() {
		check(c.Program())
	}
	for _, p := range conform.Products() {
		check(p.Program())
	}
}
