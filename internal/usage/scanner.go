package usage

// Format is the form of a body.
type Format uint8

const (
	// JSON is one document, documents one after another, or an array of documents.
	JSON Format = iota
	// Lines has one document a line.
	Lines
	// Events is the event stream of HTML (text/event-stream).
	Events
	// Frames is the event stream of AWS (application/vnd.amazon.eventstream).
	Frames
)

// Scanner scans one body. The zero Scanner is not ready: call Begin. A Scanner is not safe for concurrent use.
type Scanner struct {
	document document
	format   Format
	boundary int // in the last piece; -1 for none
	events   eventLines
	frames   frameReader
}

// Begin makes a Scanner ready for a body.
func (s *Scanner) Begin(p *Program, f Format) {
	*s = Scanner{document: document{program: p}, format: f, boundary: -1}
}

// Write scans the next piece of the body. Write never fails, and keeps nothing of b.
func (s *Scanner) Write(b []byte) {
	s.boundary = -1
	switch s.format {
	case JSON:
		s.document.write(b)
	case Lines:
		s.writeLines(b)
	case Events:
		s.boundary = s.events.write(b, &s.document)
	case Frames:
		s.boundary = s.frames.write(b, &s.document)
	}
}

// End says that the body is complete: a number at its end is then complete too.
func (s *Scanner) End() {
	if s.format == Events {
		return // an event without its empty line does not count
	}
	s.document.reset()
	if s.frames.open() {
		s.document.broken = true
	}
}

// Value gives the number of a field, and whether it was seen.
func (s *Scanner) Value(field int) (v int64, seen bool) {
	return s.document.values[field], s.document.has&(1<<field) != 0
}

// Text gives the string of the field of the kind Text. The bytes are valid until the next Write.
func (s *Scanner) Text() []byte { return s.document.text[:s.document.textLen] }

// Done reports whether an event with the data [DONE] was seen, with which some services end a stream.
func (s *Scanner) Done() bool { return s.events.done }

// Complete reports whether a body of the format JSON has a document, and none that is open.
func (s *Scanner) Complete() bool {
	return s.format == JSON && s.document.documents > 0 && !s.document.open()
}

// Boundary is the offset in the piece of the last Write just behind its last complete event; -1 if no event ended there. A body of
// the format JSON has no boundaries.
func (s *Scanner) Boundary() int { return s.boundary }

// Events counts complete events with data other than [DONE], frames, or documents: each element of an array at the top is one.
func (s *Scanner) Events() int {
	switch s.format {
	case Events:
		return s.events.count
	case Frames:
		return s.frames.count
	default:
		return s.document.documents
	}
}

// Broken reports whether something was not of the format.
func (s *Scanner) Broken() bool { return s.document.broken || s.frames.bad }
