package throttler

// names keeps one string for each text, so that the text of a request is copied once and not for
// each request.
type names struct {
	most int
	kept map[string]string
}

func newNames(most int) names { return names{most: most, kept: map[string]string{}} }

// intern returns the kept string of a text. When there are too many, all are forgotten: those in use
// come back.
func (n *names) intern(text []byte) string {
	if kept, ok := n.kept[string(text)]; ok {
		return kept
	}
	if len(n.kept) >= n.most {
		clear(n.kept)
	}
	kept := string(text)
	n.kept[kept] = kept
	return kept
}
