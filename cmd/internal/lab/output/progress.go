package output

import (
	"fmt"
	"io"
	"time"
)

// Progress shows how far a run has come: on a terminal in one line that changes, elsewhere by a line every ten seconds. One goroutine
// uses a Progress.
type Progress struct {
	to       io.Writer
	terminal bool
	now      func() time.Time
	began    time.Time
	next     time.Time // of the next line
	shown    int       // characters of the line on the terminal
}

// The times between two lines.
const (
	terminalEvery = 250 * time.Millisecond
	logEvery      = 10 * time.Second
)

// mostLeft bounds the time left that is shown.
const mostLeft = 30 * 24 * time.Hour

// NewProgress begins a run. to is standard error. now is the clock of the machine.
func NewProgress(to io.Writer, terminal bool, now func() time.Time) *Progress {
	p := &Progress{to: to, terminal: terminal, now: now, began: now()}
	p.next = p.began.Add(p.every())
	return p
}

func (p *Progress) every() time.Duration {
	if p.terminal {
		return terminalEvery
	}
	return logEvery
}

// At shows how many requests were decided, and the part of the run that is done: 0 to 1, or less than 0 if the end is not known. It
// reads the clock, so call it after every few thousand requests.
func (p *Progress) At(requests int64, done float64) {
	now := p.now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(p.every())
	p.show(progressLine(requests, done, now.Sub(p.began)))
}

func (p *Progress) show(line string) {
	if !p.terminal {
		_, _ = fmt.Fprintln(p.to, line)
		return
	}
	_, _ = fmt.Fprintf(p.to, "\r%-*s", p.shown, line)
	p.shown = len(line)
}

// progressLine describes a run. The time left assumes that the rest takes as long as the part before.
func progressLine(requests int64, done float64, lasted time.Duration) string {
	line := Count(requests) + " requests"
	if seconds := lasted.Seconds(); seconds > 0 {
		line += fmt.Sprintf(", %s a second", Count(int64(float64(requests)/seconds)))
	}
	if done < 0 {
		return line
	}
	line += fmt.Sprintf(", %.0f %%", 100*min(done, 1))
	if done > 0 && done < 1 {
		if left := float64(lasted) * (1 - done) / done; left < float64(mostLeft) {
			line += fmt.Sprintf(", %v left", time.Duration(left).Round(time.Second))
		} else {
			line += ", more than 30 days left"
		}
	}
	return line
}

// End removes the line from the terminal, so that the result follows.
func (p *Progress) End() {
	if p.shown > 0 {
		_, _ = fmt.Fprintf(p.to, "\r%*s\r", p.shown, "")
		p.shown = 0
	}
}
