package schedule

import "math"

// PID learns from windows that are over how fast the permits of the next shall open.
// The zero PID begins with evenly. The package's comment derives it. It is for one
// goroutine at a time.
type PID struct {
	speed float64 // the logarithm of how much faster than evenly permits open
}

// Outcome is what a window was like. Times are parts of the window since its begin, from 0 to 1.
type Outcome struct {
	Part, Used int64
	// Wanted says that all of the part was used, and somebody went without. Then Lasted is
	// when the last permit was given.
	Wanted bool
	Lasted float64
	// Until is until when somebody went on wanting more: when the last of those who went
	// without gave up, or would have. 0 is not known, and to the end.
	Until float64
}

// MaxSpeed is how much faster than evenly permits open at most.
const MaxSpeed = 5

// gain is how much of a window's mistake is mended in the next.
const gain = 0.75

// Next takes the outcome of a window and gives the part of the next window, from
// 1/MaxSpeed to 1, in which its permits open. A window that had no part, or of which
// nothing was used, teaches nothing.
func (c *PID) Next(o Outcome) float64 {
	if o.Part > 0 && o.Used > 0 {
		c.speed = min(max(c.speed+gain*c.mistake(o), 0), math.Log(MaxSpeed))
	}
	return max(math.Exp(-c.speed), 1.0/MaxSpeed)
}

// mistake gives the logarithm of how many times faster the permits should have opened.
func (c *PID) mistake(o Outcome) float64 {
	switch {
	case o.Used < o.Part:
		return math.Log(float64(o.Part) / float64(o.Used))
	case !o.Wanted:
		return 0
	}
	until := o.Until
	if !(until > 0 && until < 1) {
		until = 1
	}
	// The last permit was to last as long as the others, which are so far apart.
	lasted := o.Lasted + math.Exp(-c.speed)/float64(o.Part)
	if !(lasted > 1.0/MaxSpeed) {
		lasted = 1.0 / MaxSpeed // No line gives all sooner.
	}
	return min(math.Log(lasted/until), 0)
}
