package script_test

import (
	"crypto/sha1"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/store/script"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// benchKeys is the number of keys of the benchmarks. The groups use them in turns.
const benchKeys = 10_000

// benchPolicies gives the policies of the benchmarks by name. Each key gets a few requests, so most
// requests pass.
func benchPolicies() map[string][]headgate.Policy {
	l := headgate.Limit{Count: 100, Per: time.Second}
	log := headgate.Policy{Algorithm: headgate.SlidingLog, Limit: l}
	wide, widest := log, log
	wide.Limit, widest.Limit = headgate.Limit{Count: 2000, Per: 10 * time.Second}, headgate.Limit{Count: 10_000, Per: time.Minute}
	return map[string][]headgate.Policy{
		"token_bucket":       {{Limit: l}},
		"token_bucket_third": {{Limit: headgate.Limit{Count: 3, Per: time.Second}}},
		"leaky_bucket":       {{Algorithm: headgate.LeakyBucket, Limit: l}},
		"fixed_window":       {{Algorithm: headgate.FixedWindow, Limit: l}},
		"calendar_month":     {{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 100, Calendar: headgate.Month}}},
		"sliding_log":        {log},
		"sliding_log_hour":   {{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1000, Per: time.Hour}}},
		"sliding_window_4":   {{Algorithm: headgate.SlidingWindow, Limit: l, SubWindows: 4}},
		"sliding_window_256": {{Algorithm: headgate.SlidingWindow, Limit: l, SubWindows: 256}},
		"ban":                {{Algorithm: headgate.Ban, Limit: l, BanFor: time.Minute}},
		"three_logs":         {log, wide, widest},
	}
}

// BenchmarkDecide measures the time of Redis for a decision, in single calls and in batches.
// Calls are pipelined. The result is the median of many rounds, because the machine is shared.
func BenchmarkDecide(b *testing.B) {
	scenes := benchPolicies()
	for _, name := range slices.Sorted(maps.Keys(scenes)) {
		for _, size := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				s := newStore(b, newClient(b, testserver.Start(b).Addr), 1, nil)
				newScene(b, s, scenes[name], size).decide(b)
			})
		}
	}
}

// BenchmarkHotKey has one key in all groups of a batch.
func BenchmarkHotKey(b *testing.B) {
	for _, size := range []int{1, 64, 256} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			s := newStore(b, newClient(b, testserver.Start(b).Addr), 1, nil)
			c := newScene(b, s, []headgate.Policy{{Limit: headgate.Limit{Count: 100_000, Per: time.Second}}}, size)
			c.keys = 1
			c.decide(b)
		})
	}
}

// BenchmarkBatch measures the encoding and decoding of one group of a batch, without the network.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{1, 64, 256} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			s := newStore(b, newClient(b, testserver.Start(b).Addr), 256, nil)
			c := newScene(b, s, []headgate.Policy{{Limit: headgate.Limit{Count: 100, Per: time.Second}}}, size)
			var batch script.Batch
			decisions := make([]headgate.Decision, 1)
			reply := ""
			b.ReportAllocs()
			b.ResetTimer()
			for turn := range b.N / size {
				batch.Reset(s.names)
				for i := range size {
					if err := batch.Add(c.ops, c.plans, c.places[i], 0); err != nil {
						b.Fatal(err)
					}
				}
				keys, args := batch.Keys(), batch.Args(0, time.Second)
				if turn == 0 {
					var err error
					if reply, err = s.run(b.Context(), s.decide, keys, args).ToString(); err != nil {
						b.Fatal(err)
					}
				}
				if err := batch.Read(reply); err != nil {
					b.Fatal(err)
				}
				for i := range size {
					if err := batch.Explain(i, c.ops, c.plans, c.places[i], decisions); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkFloor calls a script that does nothing.
func BenchmarkFloor(b *testing.B) {
	s := newStore(b, newClient(b, testserver.Start(b).Addr), 1, nil)
	s.decide = script.Script{Text: "return ''"}
	s.decide.SHA = fmt.Sprintf("%x", sha1.Sum([]byte(s.decide.Text)))
	newScene(b, s, []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Second}}}, 1).decide(b)
}

// scene decides groups with the same policies. The groups use the keys in turns.
type scene struct {
	s      *store
	size   int
	ops    []headgate.Op
	plans  []*script.Plan
	places [][]script.Place
	turn   int
	keys   int
}

func newScene(b *testing.B, s *store, policies []headgate.Policy, size int) *scene {
	b.Helper()
	c := &scene{s: s, size: size, ops: make([]headgate.Op, len(policies)), places: make([][]script.Place, benchKeys), keys: benchKeys}
	for i, p := range policies {
		plan, err := script.Compile(p)
		if err != nil {
			b.Fatal(err)
		}
		c.plans, c.ops[i] = append(c.plans, plan), headgate.Op{Cost: 1}
		if unit := p.Limit.Calendar; unit != headgate.NoCalendar {
			edges := calendar.Default().Edges(unit, time.Now())
			c.ops[i].Edges = &edges
		}
		for k := range c.places {
			c.places[k] = append(c.places[k], script.PlaceOf(strconv.Itoa(k), uint8(i)))
		}
	}
	return c
}

// round decides n groups in one pipeline, and gives the server's time for one group.
func (c *scene) round(b *testing.B, n int) float64 {
	b.Helper()
	var batch script.Batch
	var calls []rueidis.Completed
	for range n / c.size {
		batch.Reset(c.s.names)
		for range c.size {
			if err := batch.Add(c.ops, c.plans, c.places[c.turn*7919%c.keys], 0); err != nil {
				b.Fatal(err)
			}
			c.turn++
		}
		keys := batch.Keys()
		calls = append(calls, c.s.client.B().Evalsha().Sha1(c.s.decide.SHA).Numkeys(int64(len(keys))).
			Key(keys...).Arg(batch.Args(0, time.Second)...).Build())
	}
	before := serverMicros(b, c.s.client)
	for _, result := range c.s.client.DoMulti(b.Context(), calls...) {
		if err := result.Error(); err != nil {
			b.Fatal(err)
		}
	}
	return (serverMicros(b, c.s.client) - before) / float64(n)
}

const benchRound = 1024

func (c *scene) decide(b *testing.B) {
	b.Helper()
	load := c.s.client.B().ScriptLoad().Script(c.s.decide.Text).Build()
	if err := c.s.client.Do(b.Context(), load).Error(); err != nil {
		b.Fatal(err)
	}
	for range 2 * benchKeys / benchRound { // Each key then has state.
		c.round(b, benchRound)
	}
	b.ResetTimer()
	var rounds []float64
	cpu := serverCPU(b, c.s.client)
	for range b.N/benchRound + 1 {
		rounds = append(rounds, c.round(b, benchRound))
	}
	b.ReportMetric((serverCPU(b, c.s.client)-cpu)/float64(len(rounds)*benchRound), "redis-cpu-µs/decision")
	slices.Sort(rounds)
	b.ReportMetric(rounds[len(rounds)/2], "redis-µs/decision")
	b.ReportMetric(rounds[0], "redis-µs-best")
}

// serverMicros gives the total time of scripts in microseconds, as measured by the server.
func serverMicros(b *testing.B, client rueidis.Client) float64 {
	b.Helper()
	stats, err := client.Do(b.Context(), client.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		b.Fatal(err)
	}
	found := regexp.MustCompile(`cmdstat_evalsha:.*usec=([0-9]+),`).FindStringSubmatch(stats)
	if found == nil {
		return 0
	}
	micros, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return micros
}

// serverCPU gives the CPU time of the server in microseconds. It includes the network.
func serverCPU(b *testing.B, client rueidis.Client) float64 {
	b.Helper()
	stats, err := client.Do(b.Context(), client.B().Info().Section("cpu").Build()).ToString()
	if err != nil {
		b.Fatal(err)
	}
	sum := 0.0
	for _, found := range regexp.MustCompile(`used_cpu_(?:user|sys):([0-9.]+)`).FindAllStringSubmatch(stats, -1) {
		seconds, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += 1e6 * seconds
	}
	return sum
}
