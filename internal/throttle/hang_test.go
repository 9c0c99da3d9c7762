package throttle

import (
	"fmt"
	"testing"
	"time"
)

// TestHang is a service with four places that stops to answer. Requests come every 100 ms.
func TestHang(t *testing.T) {
	s := storyOf(t, Config{Concurrency: 4, Deadline: time.Second})
	for i := range 4 {
		s.is(s.arrives(fmt.Sprint(i), "sheddable a /", 1000), fmt.Sprint(i, " goes"))
		s.after(100)
	}
	s.is(s.arrives("queued", "sheddable a /", 1000), "queued waits")
	s.after(700) // 1,100 ms: two of four have passed their deadlines.
	s.is(s.arrives("early", "sheddable a /", 1000), "early waits")
	s.waits("queued", 62500*time.Microsecond)
	s.after(201) // 1,301 ms: all four have.
	s.waits("queued", 0)
	s.waits("early", 0)
	s.is(s.expires("queued"), "queued deadline")
	s.is(s.expires("early"), "early deadline")
	s.is(s.arrives("late", "sheddable a /", 1000), "late waits")
	s.waits("late", 62500*time.Microsecond)
	if r := s.all["early"].RetryAfter; r != time.Second {
		t.Errorf("a refused request retries after %v, want the deadline", r)
	}

	s.is(s.fails("0"), "late goes") // The first probe.
	s.is(s.fails("1"), "")
	s.is(s.arrives("second", "critical_plus b /", 1000), "second waits")
	s.is(s.fails("2"), "")
	s.is(s.fails("3"), "")
	s.after(10)
	s.is(s.fails("late"), "second goes") // It failed quickly, which says nothing.
	s.is(s.arrives("third", "critical_plus b /", 1000), "third waits")
	if l := s.under.Load(); !s.under.Hung(s.now) || l.InFlight != 1 {
		t.Errorf("the load is %+v, want a hang and one request", l)
	}
	s.after(10)
	s.is(s.ends("second", 10), "third goes") // An answer: the service gets four again.
	for i := range 3 {
		s.is(s.arrives(fmt.Sprint("again ", i), "sheddable a /", 1000), fmt.Sprint("again ", i, " goes"))
	}
	if l := s.under.Load(); s.under.Hung(s.now) || l.InFlight != 4 {
		t.Errorf("the load is %+v, want no hang and four requests", l)
	}
}

// TestProbeWithALongTime: a caller gives a probe a minute. The probe is cancelled after three times Deadline, and shows that the service
// still hangs, 5 s after the last other request has ended.
func TestProbeWithALongTime(t *testing.T) {
	s := storyOf(t, Config{Concurrency: 4, Deadline: time.Second})
	for i := range 4 {
		s.is(s.arrives(fmt.Sprint(i), "sheddable a /", 1000), fmt.Sprint(i, " goes"))
	}
	s.after(1200)
	s.is(s.arrives("probe", "sheddable a /", 60_000), "probe waits")
	s.is(s.fails("0"), "probe goes")
	for i := 1; i < 4; i++ {
		s.is(s.fails(fmt.Sprint(i)), "")
	}
	s.after(3000)
	s.is(s.fails("probe"), "")
	s.after(2500)
	if !s.under.Hung(s.now) {
		t.Error("the hang is forgotten 5.5 s after the others have ended, and 2.5 s after the probe")
	}
}

// TestNoHang has services that answer, or that get no requests.
func TestNoHang(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		act    func(*story)
	}{
		"one slow request beside answers": {Config{Concurrency: 4}, func(s *story) {
			for i := range 20 {
				name := fmt.Sprint("quick ", i)
				s.arrives(name, "sheddable a /", 1000)
				s.after(100)
				s.ends(name, 1)
			}
		}},
		"fewer than five of many": {Config{Concurrency: 100}, func(s *story) { s.after(1500) }},
		"clients with tiny deadlines": {Config{Concurrency: 100}, func(s *story) {
			for i := range 20 {
				s.arrives(fmt.Sprint("tiny ", i), "sheddable a /", 1)
				s.after(2)
				s.fails(fmt.Sprint("tiny ", i))
			}
			s.after(900)
		}},
		"quick failures": {Config{Concurrency: 4}, func(s *story) {
			s.ends("first", 1)
			for i := range 20 {
				s.arrives(fmt.Sprint("quick ", i), "sheddable a /", 1000)
				s.after(100)
				s.fails(fmt.Sprint("quick ", i))
			}
		}},
		"a stream that has begun": {Config{Concurrency: 1}, func(s *story) {
			s.after(900)
			s.under.Begins(s.now, s.all["first"], false)
			s.after(5000)
		}},
		"streams that are still open": {Config{Concurrency: 16}, func(s *story) {
			for i := range 5 {
				s.arrives(fmt.Sprint("stream ", i), "sheddable a /", 1000)
				s.under.Begins(s.now, s.all[fmt.Sprint("stream ", i)], false)
			}
			s.after(3000)
		}},
		"downloads": {Config{Concurrency: 1}, func(s *story) {
			s.after(900)
			s.under.Begins(s.now, s.all["first"], true)
			s.after(60_000)
		}},
		"refusals of the service": {Config{Concurrency: 1}, func(s *story) {
			s.after(1100)
			s.under.Leave(s.now, s.all["first"], Ended{Lesson: LearnMiss, Answered: true})
		}},
		"a hang of long ago": {Config{Concurrency: 1}, func(s *story) {
			s.after(1100)
			s.fails("first")
			s.after(5000)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := storyOf(t, c.config)
			s.arrives("first", "sheddable a /", 1000)
			c.act(s)
			if s.under.Hung(s.now) {
				t.Error("the service hangs")
			}
		})
	}
}

// TestProbeOfASlowClient: a probe that does not end, because its client sends slowly, keeps the others out for four
// deadlines only.
func TestProbeOfASlowClient(t *testing.T) {
	s := storyOf(t, Config{Concurrency: 2, Deadline: time.Second})
	s.arrives("first", "sheddable a /", 1000)
	s.arrives("second", "sheddable a /", 1000)
	s.after(1001)
	s.fails("first")
	s.is(s.arrives("slow", "sheddable a /", 1000), "slow goes")
	s.fails("second")
	s.after(4000)
	s.is(s.arrives("early", "sheddable a /", 1000), "early waits")
	s.after(1)
	s.is(s.ends("", 0), "early goes")
	s.is(s.arrives("late", "sheddable a /", 1000), "late waits")
}

// waits checks how long a request still waits.
func (s *story) waits(name string, want time.Duration) {
	s.Helper()
	if got := s.under.Patience(s.now, s.all[name]); got != want {
		s.Errorf("%s waits for %v, want %v", name, got, want)
	}
}

func (s *story) expires(name string) string {
	s.under.Expire(s.now, s.all[name])
	return s.ends("", 0)
}

// fails is the end of a request without an answer.
func (s *story) fails(name string) string {
	s.under.Leave(s.now, s.all[name], Ended{Lesson: LearnMiss})
	return s.ends("", 0)
}
