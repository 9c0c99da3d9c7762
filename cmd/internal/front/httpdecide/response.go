package httpdecide

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/remote"
)

// encode encodes the answers of a decided message, counts them, and gives the status: 503 when nothing
// could be decided, and 400 or 403 for a lone request that is invalid or not permitted.
func (m *message) encode(s *Service, call *access.Call) (status int) {
	n, faults, unavailable, forbidden := m.batch.Len(), 0, 0, false
	b := m.encoded[:0]
	instance, _ := s.instance.Load().(string)
	m.decision = m.decision[:0]
	if !m.alone {
		b = append(b, '[')
	}
	var a remote.Answer
	for i := range n {
		if i > 0 {
			b = append(b, ",\n"...)
		}
		if err := m.batch.Answer(i, &a); err == nil {
			m.decision = a.AppendDecision(m.decision[:0], instance)
			b = appendAnswer(b, &a, m.decision)
		} else {
			faults++
			if errors.Is(err, remote.ErrUnavailable) {
				unavailable++
			}
			call.Refused(err)
			_, forbidden = access.ReasonOf(err)
			b = appendError(b, err)
		}
	}
	if !m.alone {
		b = append(b, ']')
	}
	b = append(b, '\n')
	m.encoded = b
	s.stats.requests.Add(uint64(n))
	s.stats.faults.Add(uint64(faults))
	switch {
	case unavailable == n:
		return http.StatusServiceUnavailable
	case m.alone && forbidden:
		return http.StatusForbidden
	case m.alone && faults == 1:
		return http.StatusBadRequest
	default:
		return http.StatusOK
	}
}

// appendAnswer appends the fields of an answer, with times in seconds, and the name of the decision; "" for none.
func appendAnswer(b []byte, a *remote.Answer, decision []byte) []byte {
	b = append(append(b, `{"verdict":"`...), a.Verdict.String()...)
	b = append(append(b, `","reason":"`...), a.Reason.String()...)
	b = append(b, '"')
	if a.Policy != "" {
		b = appendText(append(b, `,"policy":`...), a.Policy)
	}
	if a.Quota.Per > 0 {
		b = strconv.AppendInt(append(b, `,"limit":`...), a.Limit, 10)
		b = strconv.AppendInt(append(b, `,"remaining":`...), a.Remaining, 10)
		b = strconv.AppendInt(append(b, `,"count":`...), a.Quota.Count, 10)
		b = appendSeconds(append(b, `,"period":`...), a.Quota.Per)
		b = appendSeconds(append(b, `,"reset_after":`...), a.ResetAfter)
	}
	if a.RetryAfter > 0 {
		b = appendSeconds(append(b, `,"retry_after":`...), min(a.RetryAfter, a.RetryAfterMax()))
	}
	if a.Status != 0 {
		b = strconv.AppendInt(append(b, `,"status":`...), int64(a.Status), 10)
	}
	if a.Location != "" {
		b = appendText(append(b, `,"location":`...), a.Location)
	}
	if a.Fallback {
		b = append(b, `,"fallback":true`...)
	}
	if a.Metered > 0 {
		b = strconv.AppendInt(append(b, `,"metered":`...), a.Metered, 10)
	}
	b = appendLists(b, a)
	if len(decision) > 0 {
		b = append(append(append(b, `,"decision":"`...), decision...), '"')
	}
	return append(b, '}')
}

// appendLists appends the marks, and the limits that refuse.
func appendLists(b []byte, a *remote.Answer) []byte {
	from := len(b)
	a.Marks(func(name, value string) {
		separator := `,"marks":[`
		if len(b) > from {
			separator = ","
		}
		b = appendText(append(append(b, separator...), `{"name":`...), name)
		b = append(appendText(append(b, `,"value":`...), value), '}')
	})
	if len(b) > from {
		b = append(b, ']')
	}
	from = len(b)
	a.Violated(func(policy string) {
		separator := `,"violated":[`
		if len(b) > from {
			separator = ","
		}
		b = appendText(append(b, separator...), policy)
	})
	if len(b) > from {
		b = append(b, ']')
	}
	return b
}

func appendError(b []byte, err error) []byte {
	code := "invalid"
	switch reason, refused := access.ReasonOf(err); {
	case refused:
		code = reason.String()
	case errors.Is(err, remote.ErrUnavailable):
		code = "unavailable"
	}
	b = append(append(append(b, `{"error":{"code":"`...), code...), `","message":`...)
	return append(appendText(b, err.Error()), "}}"...)
}

// appendText appends a text in quotes.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // It replaces invalid UTF-8, which our texts do not have.
	return b
}

// appendSeconds appends a time in seconds.
func appendSeconds(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, d.Seconds(), 'f', -1, 64)
}
