package schedule_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
)

// Three instances share ten units a second.
func ExampleEven() {
	for window := range int64(4) {
		var parts [3]int64
		for index := range parts {
			p, err := schedule.Even(10, time.Second, 3, index)
			if err != nil {
				fmt.Println(err)
				return
			}
			parts[index] = p.Part(window)
		}
		fmt.Println(parts)
	}
	// Output:
	// [3 3 4]
	// [3 4 3]
	// [4 3 3]
	// [3 3 4]
}

// One of 96 instances has a unit in about every tenth window. After returns the window of its second unit.
func ExamplePlan_After() {
	p, err := schedule.Even(10, time.Second, 96, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	window, before, ok := p.After(0, 2)
	fmt.Println(window, before, ok)
	fmt.Println(p.Sum(0, window), p.Part(window))
	// Output:
	// 19 1 true
	// 1 1
}

// A brake allows 20 percent of ten units, for all instances together.
func ExamplePlan_Braked() {
	for window := range int64(3) {
		var parts, going [3]int64
		for index := range 3 {
			p, err := schedule.Even(10, time.Second, 3, index)
			if err != nil {
				fmt.Println(err)
				return
			}
			parts[index], going[index] = p.Part(window), p.Braked(window, 20)
		}
		fmt.Println(going, "of", parts)
	}
	// Output:
	// [0 1 1] of [3 3 4]
	// [1 1 0] of [3 4 3]
	// [1 0 1] of [4 3 3]
}

// A second instance joins, and from second 3 on two instances share the limit. Until the
// change is settled, an instance has at most the smaller part of the two plans.
func ExampleTimeline() {
	alone, _ := schedule.Even(10, time.Second, 1, 0)
	ofTwo, _ := schedule.Even(10, time.Second, 2, 0)
	const second = headgate.Instant(time.Second)
	var plans schedule.Timeline
	plans.Add(schedule.Change{Plan: alone, Revision: 1})
	plans.Add(schedule.Change{Plan: ofTwo, From: 3 * second, Settled: 2 * second, Revision: 2})
	for _, now := range []headgate.Instant{0, 2 * second, 3 * second} {
		w, ok := plans.At(now, now)
		fmt.Println(w.Number, w.Part, w.Revision, ok)
	}
	// Output:
	// 0 10 1 true
	// 2 10 1 true
	// 3 5 2 true
}

// A line spreads four permits over 100 ns. The first caller arrives after 60 ns.
func ExampleLine() {
	line := schedule.Line{Part: 4, Length: 100}
	fmt.Println("open at 30:", line.Open(30), "and the next at", line.When(3))
	line.Idle(60, 0)
	fmt.Println("open at 60:", line.Open(60), "and the next at", line.When(2))
	// Output:
	// open at 30: 2 and the next at 50
	// open at 60: 1 and the next at 75
}

// Callers arrive in the second half of each second, and do not wait. Even permits would
// serve half of the callers.
func ExamplePID() {
	var pid schedule.PID
	spread := pid.Next(schedule.Outcome{})
	for range 4 {
		used := min(int64(1000*0.5/spread), 1000)
		fmt.Printf("spread over %.2f of a window: %d used\n", spread, used)
		spread = pid.Next(schedule.Outcome{Part: 1000, Used: used})
	}
	// Output:
	// spread over 1.00 of a window: 500 used
	// spread over 0.59 of a window: 840 used
	// spread over 0.52 of a window: 958 used
	// spread over 0.51 of a window: 989 used
}
