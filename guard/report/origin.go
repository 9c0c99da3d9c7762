package report

import "fmt"

// Origin says which side an answer of the proxy comes from.
type Origin uint8

const (
	// OriginHeadgate means that Headgate answered a request that did not reach the service, or that a client or a stage
	// ended before the service had answered: refusals, malformed requests, broken uploads.
	OriginHeadgate Origin = iota
	// OriginService means that the client got the service's own answer.
	OriginService
	// OriginFailure means that the service did not answer, so that Headgate answered 502 or 504, or that the service broke
	// off its answer.
	OriginFailure
	originCount
)

var originNames = [originCount]string{"headgate", "service", "service_failed"}

// String returns the name in metrics.
func (o Origin) String() string {
	if o < originCount {
		return originNames[o]
	}
	return fmt.Sprintf("origin(%d)", uint8(o))
}

// Origins lists every origin, in the order of the constants.
func Origins() []Origin {
	all := make([]Origin, originCount)
	for i := range all {
		all[i] = Origin(i)
	}
	return all
}

// Answered counts a request by the origin and the status of its answer. Status 0 means that the client left before the answer:
// OriginService then means that the request had reached the service. Invalid statuses count as 5xx.
func (t *Traffic) Answered(from Origin, status int) {
	class := Class5xx
	if status >= 0 && status < 600 {
		class = CodeClass(status / 100)
	}
	t.answers[from][class].Add(1)
}

// Answers returns the number of answers of a class, of all origins.
func (t *Traffic) Answers(c CodeClass) (n uint64) {
	for from := range t.answers {
		n += t.answers[from][c].Load()
	}
	return n
}

// AnswersFrom returns the number of answers of an origin and a class.
func (t *Traffic) AnswersFrom(o Origin, c CodeClass) uint64 { return t.answers[o][c].Load() }

// ServiceFailures returns the number of requests that the service did not answer, or whose answer it broke off: those of
// OriginFailure, of all classes.
func (t *Traffic) ServiceFailures() (n uint64) {
	for c := range t.answers[OriginFailure] {
		n += t.answers[OriginFailure][c].Load()
	}
	return n
}
