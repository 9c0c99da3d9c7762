package memory

// KeptPercent gives the part of a table's places, in percent, that keys of so many windows
// can use while at least 99.9 % of these keys keep their state.
//
// A state has 32 neighbouring places to choose from (reach). When all of them are in use,
// one that is not being limited makes room. The more windows of a key begin at one place
// (neighbours), the more unevenly a table fills. The steps are measured: with one
// window 0.01 % of keys lose a state at 60 %, 0.06 % at 65 % and 6 % at 100 %.
func KeptPercent(windows int) int64 {
	switch {
	case windows <= 1:
		return 60
	case windows == 2:
		return 40
	case windows == 3:
		return 30
	case windows <= 8:
		return 20
	default:
		return 10
	}
}

// KeysThatKeep gives the number of keys, each with a number of windows, of which at least
// 99.9 % keep their state in a table of so many places.
func KeysThatKeep(places int64, windows int) int64 {
	return places / 100 * KeptPercent(windows) / int64(max(windows, 1))
}
