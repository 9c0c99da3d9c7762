package schedule

// Braked gives the units of window w when only so many percent of the limit may go.
func (p Plan) Braked(w int64, percent int) int64 {
	return p.Part(w) * int64(percent) / 100
}
