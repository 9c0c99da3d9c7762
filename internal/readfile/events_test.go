package readfile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitForQuiet checks the times of look, with the virtual time of a synctest bubble.
func TestWaitForQuiet(t *testing.T) {
	ms := func(all ...int) (times []time.Duration) {
		for _, n := range all {
			times = append(times, time.Duration(n)*time.Millisecond)
		}
		return times
	}
	for name, row := range map[string]struct {
		events, want []time.Duration
		until        time.Duration
	}{
		"nothing happens":             {nil, ms(5000, 10000), 12 * time.Second},
		"one event":                   {ms(100), ms(300), time.Second},
		"a burst":                     {ms(100, 110, 150, 300, 310), ms(510), time.Second},
		"two bursts":                  {ms(100, 110, 400, 590), ms(310, 790), time.Second},
		"never quiet":                 {ms(0, 150, 300, 450, 600, 750, 900, 1050, 1200, 1350, 1500, 1650, 1800, 1950, 2100), ms(2000, 2300), 3 * time.Second},
		"the last within two seconds": {ms(0, 190, 380, 570, 760, 950, 1140, 1330, 1520, 1710, 1900), ms(2000), 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events, began := make(chan int), time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), row.until)
				defer cancel()
				go func() {
					for _, at := range row.events {
						time.Sleep(at - time.Since(began)) //nolint:forbidigo // because time in the bubble is virtual.
						events <- 0
					}
				}()
				var looks []time.Duration
				err := AfterEvents(ctx, events, make(chan error), 5*time.Second, func() { looks = append(looks, time.Since(began)) })
				if err != nil || !slices.Equal(looks, row.want) {
					t.Errorf("look ran at %v (error %v), want %v", looks, err, row.want)
				}
			})
		})
	}
}

// TestWatchThatEnds: it is an error if the system ends the watch, but not if it reports one fault.
func TestWatchThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults, looks := make(chan error, 1), 0
		faults <- errors.New("overflow")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := AfterEvents[int](ctx, nil, faults, time.Hour, func() { looks++ }); err != nil || looks != 1 {
			t.Errorf("look ran %d times, with the error %v", looks, err)
		}
		events := make(chan int)
		close(events)
		if err := AfterEvents(t.Context(), events, nil, time.Hour, nil); !errors.Is(err, ErrNoEvents) {
			t.Errorf("got %v", err)
		}
	})
}
