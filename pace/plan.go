package pace

import (
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
)

// Plan is one instance's part of a provider's limit in each window: so many units of all instances together, the length of a
// window, the number of instances, and this instance's number from 0. [EvenPlan] makes one.
type Plan = schedule.Plan

// EvenPlan divides a limit evenly among instances, of which this one is number index, from 0. The error says which
// value is out of range.
func EvenPlan(limit int64, per time.Duration, instances, index int) (Plan, error) {
	return schedule.Even(limit, per, instances, index)
}
