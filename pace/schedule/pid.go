package schedule

import "math"

// PID learns from windows that are over how long the permits of the next shall last.
type PID struct {
	speed  float64 // the logarithm of how much faster than evenly permits open
	e1, e2 float64 // the errors of the two windows before
}

// Outcome is what one window was like.
type Outcome struct {
	Part, Used int64
	// Lasted is the part of the window, from 0 to 1, after which the last permit was
	// given; it counts when all were used and more were asked for.
	Lasted float64
	Wanted bool // more was asked for after the last permit
}

// Next takes the outcome of a window and gives the part of the next window, from
// 1/MaxSpeed to 1, in which its permits open.
func (c *PID) Next(o Outcome) float64 {
	if o.Part > 0 && o.Used > 0 {
		c.learn(mistake(o))
	}
	return math.Exp(-c.speed)
}

// MaxSpeed is how much faster than evenly permits open at most.
const MaxSpeed = 5

const (
	gainP = 0.2
	gainI = 0.5
	gainD = 0.05
)

func (c *PID) learn(e float64) {
	c.speed += gainI*e + gainP*(e-c.e1) + gainD*(e-2*c.e1+c.e2)
	c.speed = min(max(c.speed, 0), math.Log(MaxSpeed))
	c.e1, c.e2 = e, c.e1
}

func mistake(o Outcome) float64 {
	switch {
	case o.Used < o.Part:
		return math.Log(float64(o.Part) / float64(o.Used))
	case o.Wanted:
		return math.Log(max(o.Lasted, 1.0/(2*MaxSpeed)))
	}
	return 0
}
