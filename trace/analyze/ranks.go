package analyze

// Ranks is what several ranks show together.
type Ranks struct{}

func acrossRanks(devices []Device, timelines []*Timeline) *Ranks { return nil }
