package usage

import (
	"math"
	"strconv"
)

// MaxNumber is the highest number that is read; higher ones are ignored, as negative ones are.
const MaxNumber = 1 << 53

// values are what has been read.
type values struct {
	program   *Program
	documents int
	has       uint64
	numbers   [MaxFields]float64
	// texts has the texts, one behind another, and spans their places. The memory is used again.
	texts []byte
	spans [MaxTexts]span
}

// span is the place of the text of a field in values.texts.
type span struct {
	field    int8
	set      bool
	from, to uint16
}

// readsText reports whether a field reads the text at a node.
func (v *values) readsText(at int16) bool {
	for _, f := range v.program.nodes[at].fields {
		if v.program.fields[f].Text {
			return true
		}
	}
	return false
}

// text notes the text at a node.
func (v *values) text(at int16, text []byte, long bool) {
	if long {
		text = nil // A part of a name could be another name.
	}
	for _, f := range v.program.nodes[at].fields {
		if v.program.fields[f].Text {
			v.setText(f, text)
		}
	}
}

// setText keeps the text of a field. A text that is not longer than the one before takes its place.
func (v *values) setText(field int8, text []byte) {
	for i := range v.spans {
		s := &v.spans[i]
		switch {
		case !s.set:
			*s = span{field: field, set: true, from: uint16(len(v.texts))}
			v.texts = append(v.texts, make([]byte, maxToken)...)
		case s.field != field:
			continue
		}
		s.to = s.from + uint16(copy(v.texts[s.from:s.from+maxToken], text))
		v.has |= 1 << field
		return
	}
}

// scalar notes a number, or the text of a number or a word, at a node.
func (v *values) scalar(at int16, token []byte) {
	number, isNumber := parse(token)
	for _, f := range v.program.nodes[at].fields {
		switch {
		case v.program.fields[f].Text:
			if string(token) != "null" {
				v.setText(f, token)
			}
		case isNumber:
			v.number(f, number)
		}
	}
}

func (v *values) number(field int8, n float64) {
	bit := uint64(1) << field
	to := &v.numbers[field]
	switch merge := v.program.fields[field].Merge; {
	case v.has&bit == 0 || merge == Last:
		*to = n
	case merge == Sum:
		*to = min(*to+n, MaxNumber)
	default:
		*to = max(*to, n)
	}
	v.has |= bit
}

// parse reads a number from 0 to MaxNumber.
func parse(token []byte) (float64, bool) {
	if len(token) == 0 || token[0] < '0' || token[0] > '9' {
		return 0, false // null, true, false, or negative
	}
	n := uint64(0)
	for i, c := range token {
		if c < '0' || c > '9' || i == 15 {
			f, err := strconv.ParseFloat(string(token), 64)
			return f, err == nil && f <= MaxNumber && !math.IsNaN(f)
		}
		n = 10*n + uint64(c-'0')
	}
	return float64(n), true
}
