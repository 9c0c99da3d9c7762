package outcome

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/flood"
	"github.com/headgate/headgate/cmd/test/bench/proxy"
	"github.com/headgate/headgate/cmd/test/bench/scenes"
)

// Outcome holds the measurements of one run.
type Outcome struct {
	Machine  Machine          `json:"machine"`
	Quick    bool             `json:"quick"`
	Effort   contest.Effort   `json:"effort"`
	Size     scenes.Size      `json:"size"`
	Contests []contest.Result `json:"contests,omitempty"`
	Flood    []flood.Row      `json:"flood,omitempty"`
	Memory   []proxy.Memory   `json:"memory,omitempty"`
	Proxies  []proxy.Result   `json:"proxies,omitempty"`
}

// Missed returns the names of the ratios that missed their bar.
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

// all returns the results of all contests, including those of proxies.
func (o *Outcome) all() []contest.Result {
	all := slices.Clip(o.Contests)
	for _, p := range o.Proxies {
		all = append(all, p.Result)
	}
	return all
}

// Write writes <date>-<commit>.md and <date>-<commit>.json to the folder, and returns their
// path without the extension.
func (o *Outcome) Write(folder string) (string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // All users may read the results.
		return "", err
	}
	name := filepath.Join(folder, o.Machine.Date[:len("2006-01-02")]+"-"+o.Machine.Commit)
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(name+".json", append(text, '\n'), 0o644); err != nil { //nolint:gosec // All users may read the results.
		return "", err
	}
	return name, os.WriteFile(name+".md", []byte(o.Markdown()), 0o644) //nolint:gosec // All users may read the results.
}
