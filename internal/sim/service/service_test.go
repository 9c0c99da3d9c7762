package service_test

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/sim"
	"github.com/headgate/headgate/internal/sim/service"
)

// ends runs jobs that begin together, and returns their ends in milliseconds.
func ends(m service.Model, jobs ...service.Job) []int64 {
	clock := sim.NewTime(0)
	s := service.New(clock, m)
	all := make([]int64, len(jobs))
	for i := range jobs {
		s.Run(&jobs[i], func() { all[i] = clock.Since().Round(time.Millisecond).Milliseconds() })
	}
	clock.Run(func() bool { return true })
	return all
}

const ms = float64(time.Millisecond)

// TestModels tells what each model does with jobs that begin together.
func TestModels(t *testing.T) {
	t.Parallel()
	cpu := func(times ...float64) (jobs []service.Job) {
		for _, n := range times {
			jobs = append(jobs, service.Job{CPU: n * ms})
		}
		return jobs
	}
	pooled := func(n int) (jobs []service.Job) {
		return slices.Repeat([]service.Job{{CPU: ms, Pool: 10 * ms}}, n)
	}
	for name, c := range map[string]struct {
		model service.Model
		jobs  []service.Job
		want  []int64
	}{
		"each job has a core":              {service.Model{Cores: 2}, cpu(10, 30), []int64{10, 30}},
		"two jobs share a core":            {service.Model{Cores: 1}, cpu(10, 30), []int64{20, 40}},
		"a pool of two":                    {service.Model{Cores: 4, Connections: 2}, pooled(4), []int64{11, 11, 21, 21}},
		"a lock":                           {service.Model{Cores: 4, Connections: 1}, pooled(3), []int64{11, 21, 31}},
		"a wait after the pool":            {service.Model{Cores: 4, Connections: 1}, []service.Job{{Pool: 5 * ms, Wait: 7 * ms}, {CPU: 0.1 * ms, Pool: ms}}, []int64{6, 12}},
		"many jobs slow the service down":  {service.Model{Cores: 4, SlowFrom: 1, SlowBy: 0.1}, cpu(8, 8, 8), []int64{10, 10, 10}},
		"a collapse keeps the least speed": {service.Model{Cores: 4, SlowFrom: 1, SlowBy: 1, LeastSpeed: 0.1}, cpu(8, 8, 8), []int64{80, 80, 80}},
	} {
		got := ends(c.model, c.jobs...)
		slices.Sort(got) // Equal jobs have no order.
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the jobs end at %v ms, want %v", name, got, c.want)
		}
	}
}

// TestSetSpeed: a service that loses half of its speed takes twice as long for the rest. A job without an end is work all the same.
func TestSetSpeed(t *testing.T) {
	t.Parallel()
	clock := sim.NewTime(0)
	s := service.New(clock, service.Model{Cores: 1})
	s.Run(&service.Job{CPU: 10 * ms}, nil)
	ended := time.Duration(0)
	s.Run(&service.Job{CPU: 20 * ms}, func() { ended = clock.Since().Round(time.Millisecond) })
	clock.At(clock.Now().Add(20*time.Millisecond), func() { s.SetSpeed(0.5) })
	clock.Run(func() bool { return true })
	if ended != 40*time.Millisecond {
		t.Errorf("the job ends after %v, want 40ms", ended)
	}
}
