package race

// Fewer returns the number of inputs that a test tries: few with the race detector, and all without it.
func Fewer(all, few int) int {
	if On {
		return few
	}
	return all
}
