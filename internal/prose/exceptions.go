package prose

// exception allows a pattern in those texts of a file that contain some words.
type exception struct {
	file, pattern, text string
	reason              string
}

// exceptions returns the allowed patterns. A test fails when an exception is not needed.
func exceptions() []exception { return nil }
