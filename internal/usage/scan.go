package usage

// Form is the form of a body.
type Form uint8

const (
	// JSON is one document, several behind one another, lines of JSON, or an array of documents.
	JSON Form = iota
	// Events are server-sent events.
	Events
	// Frames are messages of application/vnd.amazon.eventstream.
	Frames
)

// Scan reads one body. One goroutine at a time uses a Scan. The zero Scan reads nothing before Reset.
type Scan struct {
	form     Form
	boundary int
	document document
	values   values
	events   events
	frames   frames
}

// Reset prepares the Scan for a body, and keeps the memory of the texts.
func (s *Scan) Reset(p *Program, form Form) {
	texts := s.values.texts[:0]
	*s = Scan{form: form, boundary: -1}
	s.values.program, s.values.texts = p, texts
}

// Write reads the next bytes. It does not keep them.
func (s *Scan) Write(b []byte) {
	switch s.form {
	case Events:
		s.boundary = s.events.write(&s.document, &s.values, b)
	case Frames:
		s.boundary = s.frames.write(&s.document, &s.values, b)
	default:
		s.lines(b)
	}
}

// lines reads JSON. The end of a line between two documents is a boundary.
func (s *Scan) lines(b []byte) {
	s.boundary = -1
	if s.document.write(&s.values, b); s.document.step != atValue || s.document.depth > 0 || s.values.documents == 0 {
		return
	}
	if n := len(b); n > 0 && b[n-1] == '\n' {
		s.boundary = n
	}
}

// End ends the body. Only then does a number at the very end count.
func (s *Scan) End() { s.document.reset(&s.values) }

// Boundary is the position behind the last event, line or message that the last Write has completed; -1 for none. Of lines of JSON, only
// the last one of the bytes is looked at.
func (s *Scan) Boundary() int { return s.boundary }

// Count is the number of events with data, of documents, or of messages, without the event [DONE].
func (s *Scan) Count() int {
	switch s.form {
	case Events:
		return s.events.number
	case Frames:
		return s.frames.number
	default:
		return s.values.documents
	}
}

// Done reports that the event [DONE] was read, with which an API says that the answer is complete.
func (s *Scan) Done() bool { return s.events.done }

// Broken reports that the form is not what Reset said.
func (s *Scan) Broken() bool { return s.frames.broken }

// Number gives the number of a field, by its position in the Program.
func (s *Scan) Number(field int) (n float64, found bool) {
	return s.values.numbers[field], s.values.has&(1<<field) != 0
}

// Text gives the text of a field, which is valid until the next Write or Reset.
func (s *Scan) Text(field int) (text []byte, found bool) {
	for i := range s.values.spans {
		if span := &s.values.spans[i]; span.set && int(span.field) == field {
			return s.values.texts[span.from:span.to], true
		}
	}
	return nil, false
}
