package main

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/internal/pace/schedule/simulation"
)

// The setting of all plots: one instance, so many units a second, timers that are up to
// so much late, and permits counted in slots of 10 ms.
const (
	limit = 10_000
	late  = 3 * time.Millisecond
	slot  = 10 * time.Millisecond
	slots = int(time.Second / slot)
)

// smoothing is a way to spread permits.
type smoothing struct {
	name   string
	spread func() func(schedule.Outcome) float64
}

func off() smoothing {
	return smoothing{"off", func() func(schedule.Outcome) float64 { return nil }}
}

func even() smoothing {
	return smoothing{"even", func() func(schedule.Outcome) float64 {
		return func(schedule.Outcome) float64 { return 1 }
	}}
}

func pid() smoothing {
	return smoothing{"pid", func() func(schedule.Outcome) float64 { return new(schedule.PID).Next }}
}

// simulate runs a demand for some windows, after some quiet ones in which 1,000 callers come evenly.
func simulate(
	s smoothing, quiet, windows int, patience time.Duration, demand simulation.Demand,
) ([]simulation.Window, error) {
	plan, err := schedule.Even(limit, time.Second, 1, 0)
	if err != nil {
		return nil, err
	}
	before := simulation.Phase{Windows: quiet, Demand: simulation.Evenly(1000)}
	return simulation.Setup{
		Plan: plan, Windows: quiet + windows, Patience: patience, Spread: s.spread(), Late: late,
		Demand: simulation.InTurn(before, simulation.Phase{Demand: demand}),
	}.Run(), nil
}

// overload is three times the limit at the start of each second, after quiet seconds.
func overload() (picture, error) {
	p := picture{
		file: "pacing-overload.svg",
		heading: [2]string{
			"A limit of 10,000 calls a second (dashed). Timers are up to 3 ms late.",
			"From second 0 on 30,000 callers come at the start of each second, and wait.",
		},
	}
	marks, tops := [][]int{{0, 5000, 10_000}, {0, 50, 100, 150}, {0, 200, 400, 600}}, []float64{10_500, 150, 660}
	for i, s := range []smoothing{off(), even(), pid()} {
		windows, err := simulate(s, 10, 5, 0, simulation.AtStart(3*limit))
		if err != nil {
			return p, err
		}
		settled := windows[len(windows)-1]
		p.panels = append(p.panels, panel{
			title: fmt.Sprintf("smoothing: %s. In the fifth second the coefficient of variation is %.2f, and %.1f %% of the limit is used.",
				s.name, simulation.Variation(settled.Slots(time.Second, slot)), 100*simulation.Used(windows[len(windows)-1:])),
			y: "calls in 10 ms", bars: counts(windows[9:]), from: -1, level: limit / float64(slots), marks: marks[i], top: tops[i],
		})
	}
	return p, nil
}

// step is how the controller learns: overload begins, and ends.
func step() (picture, error) {
	const quiet, busy = 10, 12
	p := picture{
		file: "pacing-step.svg",
		heading: [2]string{
			"smoothing: pid, at a limit of 10,000 calls a second. From second 0 on three times the limit",
			"comes at the start of each second, from second 12 on half the limit evenly.",
		},
	}
	demand := simulation.InTurn(
		simulation.Phase{Windows: busy, Demand: simulation.AtStart(3 * limit)},
		simulation.Phase{Demand: simulation.Evenly(limit / 2)},
	)
	windows, err := simulate(pid(), quiet, busy+8, time.Second, demand)
	if err != nil {
		return p, err
	}
	var speed, variation []float64
	for _, w := range windows[quiet-2:] {
		speed = append(speed, 1/w.Spread)
		variation = append(variation, simulation.Variation(w.Slots(time.Second, slot)))
	}
	p.panels = []panel{
		{
			title: "How many times faster than evenly permits open.", y: "speed",
			points: speed, from: -2, marks: []int{0, 1, 2, 3, 4, 5}, top: 5.4,
		},
		{
			title: "What the provider sees: the coefficient of variation of calls in 10 ms (0.2 is dashed).", y: "variation",
			points: variation, from: -2, level: 0.2, marks: []int{0, 1, 2}, top: 2.2,
		},
	}
	return p, nil
}

// lateDemand is callers who come in the second half of each second, and do not wait long.
func lateDemand() (picture, error) {
	p := picture{
		file: "pacing-late.svg",
		heading: [2]string{
			"A limit of 10,000 calls a second (dashed). In the second half of each second",
			"30,000 callers come, who wait for 0.1 s.",
		},
	}
	for _, s := range []smoothing{even(), pid()} {
		windows, err := simulate(s, 0, 5, 100*time.Millisecond, simulation.Between(3*limit, 0.5, 1))
		if err != nil {
			return p, err
		}
		p.panels = append(p.panels, panel{
			title: fmt.Sprintf("smoothing: %s. In the fifth second %.0f %% of the limit is used.",
				s.name, 100*simulation.Used(windows[4:])),
			y: "calls in 10 ms", bars: counts(windows), level: limit / float64(slots), marks: []int{0, 100, 200, 300}, top: 330,
		})
	}
	return p, nil
}

// burst is half the limit at the start of each second.
func burst() (picture, error) {
	p := picture{
		file: "pacing-burst.svg",
		heading: [2]string{
			"A limit of 10,000 calls a second (dashed).",
			"5,000 callers come at the start of each second, and wait.",
		},
	}
	marks, tops := [][]int{{0, 2500, 5000}, {0, 50, 100, 150}, {0, 200, 400, 600}}, []float64{5250, 150, 660}
	for i, s := range []smoothing{off(), even(), pid()} {
		windows, err := simulate(s, 10, 3, 0, simulation.AtStart(limit/2))
		if err != nil {
			return p, err
		}
		p.panels = append(p.panels, panel{
			title: fmt.Sprintf("smoothing: %s. 99 %% of the callers wait for less than %d ms.", s.name,
				simulation.Wait(windows[10:], 0.99).Milliseconds()+1),
			y: "calls in 10 ms", bars: counts(windows[10:]), level: limit / float64(slots), marks: marks[i], top: tops[i],
		})
	}
	return p, nil
}

func counts(windows []simulation.Window) (all []int) {
	for _, w := range windows {
		all = append(all, w.Slots(time.Second, slot)...)
	}
	return all
}
