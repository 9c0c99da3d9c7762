package outcome

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/flood"
	"github.com/headgate/headgate/test/bench/proxy"
	"github.com/headgate/headgate/test/bench/scenes"
)

// Outcome is all that one run measured.
type Outcome struct {
	Machine  Machine          `json:"machine"`
	Quick    bool             `json:"quick"`
	Effort   contest.Effort   `json:"effort"`
	Size     scenes.Size      `json:"size"`
	Contests []contest.Result `json:"contests,omitempty"`
	Flood    []flood.Row      `json:"flood,omitempty"`
	Proxy    *proxy.Result    `json:"proxy,omitempty"`
	// Skipped says what was not measured, and why.
	Skipped []string `json:"skipped,omitempty"`
}

// Missed names the bars that are missed.
func (o *Outcome) Missed() []string {
	var missed []string
	for _, c := range o.all() {
		for _, r := range c.Ratios {
			if r.Verdict == contest.Missed {
				missed = append(missed, c.Name+": "+compared(r))
			}
		}
	}
	return missed
}

// all gives every contest, the proxy's included.
func (o *Outcome) all() []contest.Result {
	all := o.Contests
	if o.Proxy != nil {
		all = append(slices.Clip(all), o.Proxy.Result)
	}
	return all
}

// Write puts the outcome into a folder, as <date>-<commit>.md and .json, and gives
// the name without its end.
func (o *Outcome) Write(folder string) (string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // results are for everybody
		return "", err
	}
	name := filepath.Join(folder, o.Machine.Date[:len("2006-01-02")]+"-"+o.Machine.Commit)
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(name+".json", append(text, '\n'), 0o644); err != nil { //nolint:gosec // as above
		return "", err
	}
	return name, os.WriteFile(name+".md", []byte(o.Markdown()), 0o644) //nolint:gosec // as above
}
