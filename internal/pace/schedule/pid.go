package schedule

import "math"

// PID learns from past windows how fast the permits of the next window should open. The
// zero PID begins with even permits. The package comment derives the controller. A PID is
// not safe for concurrent use.
type PID struct {
	speed float64 // logarithm of the speed, where even permits have speed 1
}

// Outcome is the result of a window. Times are fractions of the window since its start, from 0 to 1.
type Outcome struct {
	Part, Used int64
	// Wanted means that the whole part was used, and some callers got no permit. Lasted is
	// then the time of the last permit.
	Wanted bool
	Lasted float64
	// Until is the end of the unmet demand: the latest deadline of a caller without a permit.
	// 0 means unknown, and counts as the end of the window.
	Until float64
}

// MaxSpeed is the maximum speed of permits, where even permits have speed 1.
const MaxSpeed = 5

// gain is the fraction of a window's error that the next window corrects.
const gain = 0.75

// Next takes the outcome of a window, and returns the fraction of the next window in which
// permits open, from 1/MaxSpeed to 1. It ignores a window without a part or without used units.
func (c *PID) Next(o Outcome) float64 {
	if o.Part > 0 && o.Used > 0 {
		c.speed = min(max(c.speed+gain*c.mistake(o), 0), math.Log(MaxSpeed))
	}
	return max(math.Exp(-c.speed), 1.0/MaxSpeed)
}

// mistake returns the logarithm of the factor by which the permits should have been faster.
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
	// The permits last until the next one would open.
	lasted := o.Lasted + math.Exp(-c.speed)/float64(o.Part)
	if !(lasted > 1.0/MaxSpeed) {
		lasted = 1.0 / MaxSpeed // A line needs at least this time for all permits.
	}
	return min(math.Log(lasted/until), 0)
}
