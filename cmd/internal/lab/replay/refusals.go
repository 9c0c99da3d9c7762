package replay

import (
	"encoding/json"
	"io"
	"time"

	"github.com/headgate/headgate/rule"
)

// Refusal is a refused request, as a line of --refused.
type Refusal struct {
	File string `json:"file"`
	Line int64  `json:"line"`
	// Time is the time of the decision.
	Time   string `json:"time"`
	Rule   string `json:"rule"`
	Policy string `json:"policy,omitempty"`
	Reason string `json:"reason"`
	Key    string `json:"key,omitempty"`
	// RetryAfter is in seconds.
	RetryAfter float64 `json:"retry_after"`
	Method     string  `json:"method"`
	Path       string  `json:"path"`
}

// tellRefused gives a refused request to Options.Refused.
func (p *replay) tellRefused(c *call) {
	r := c.refuser
	if r == nil || p.err != nil {
		return
	}
	p.first.text = r.AppendKey(p.first.text[:0], rule.PlainKeyNames())
	p.err = p.options.Refused(&Refusal{
		File: p.run.logs.files[c.record.File].Name, Line: c.record.Number, Time: timeText(c.at), Rule: r.Rule.Name, Policy: r.Policy,
		Reason: r.Decision.Reason.String(), Key: string(p.first.text), RetryAfter: r.Decision.RetryAfter.Round(time.Millisecond).Seconds(),
		Method: c.record.Method, Path: c.record.Path,
	})
}

// WriteRefusals returns a function for Options.Refused that writes a JSON object on each line.
func WriteRefusals(w io.Writer) func(*Refusal) error {
	return func(r *Refusal) error {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = w.Write(append(escapeControls(text), '\n'))
		return err
	}
}
