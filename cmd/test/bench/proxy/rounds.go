package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// meterP99 is the meter of a question that compares the p99 latency.
const meterP99 = "p99"

// samples are the measurements of one side, one of each round.
type samples struct {
	costs []float64 // nanoseconds of processor time per request
	seen  []report
}

// rounds loads the sides in random order in each round, and answers the questions.
func (s *Scene) rounds(ctx context.Context, e Effort, sides []*process) (Result, error) {
	for _, p := range sides {
		if err := p.ready(ctx, s.load); err != nil {
			return Result{}, err
		}
	}
	if s.load.half {
		_, saw, err := sides[0].round(ctx, s.load, e.Load) // This is nginx.
		if err != nil {
			return Result{}, err
		}
		atHalf := *s
		atHalf.load.rate = float64(saw.requests) / saw.took.Seconds() / 2
		s = &atHalf
	}
	all := make([]samples, len(sides))
	order := rand.New(rand.NewPCG(1, uint64(len(sides))))
	for round := -e.Warmups; round < e.Rounds; round++ {
		for _, i := range order.Perm(len(sides)) {
			cost, saw, err := sides[i].round(ctx, s.load, e.Load)
			if err != nil {
				return Result{}, err
			}
			if round >= 0 {
				all[i].costs, all[i].seen = append(all[i].costs, cost), append(all[i].seen, saw)
			}
		}
	}
	for _, p := range sides {
		if p.name == sideFast && !s.load.http2 && !s.load.grpc {
			if err := p.tookFastPath(ctx); err != nil {
				return Result{}, err
			}
		}
	}
	return s.result(e, sides, all)
}

// ready waits until the process answers as the load expects. If the load is refused, it also
// checks the status of each response for a second.
func (p *process) ready(ctx context.Context, l load) error {
	if err := p.answers(ctx, l); err != nil {
		return err
	}
	if !l.refused {
		return nil
	}
	if err := l.audit(ctx, p.url, filepath.Dir(p.log)); err != nil {
		return fmt.Errorf("proxy: %s: %w", p.name, err)
	}
	return nil
}

// round loads one side, and returns its processor time per request in nanoseconds.
func (p *process) round(ctx context.Context, l load, d time.Duration) (float64, report, error) {
	send, done, err := l.prepare(ctx, p.url, filepath.Dir(p.log))
	if err != nil {
		return 0, report{}, fmt.Errorf("proxy: %s: %w\nThe log of the process ends with:\n%s", p.name, err, p.logged())
	}
	defer done()
	before, err := p.processorTime()
	if err != nil {
		return 0, report{}, err
	}
	saw, err := send(ctx, max(d, l.least))
	if err != nil {
		return 0, report{}, fmt.Errorf("proxy: %s: %w\nThe log of the process ends with:\n%s", p.name, err, p.logged())
	}
	after, err := p.processorTime()
	if err != nil {
		return 0, report{}, err
	}
	return float64((after - before).Nanoseconds()) / float64(saw.requests), saw, p.emptyLog()
}

// emptyLog checks that the process has written its access log, and removes the lines, which
// would otherwise fill the disk.
func (p *process) emptyLog() error {
	if p.accessLog == "" {
		return nil
	}
	info, err := os.Stat(p.accessLog)
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return errors.New("proxy: the access log of " + p.name + " is empty: check its configuration")
	}
	return os.Truncate(p.accessLog, 0)
}

// result makes a row of the samples of each side.
func (s *Scene) result(e Effort, sides []*process, all []samples) (Result, error) {
	result := Result{Result: contest.Result{
		Name: s.Name, Workers: s.load.concurrent(),
		About: fmt.Sprintf("processor time of the proxy's processes per request; %s; %d rounds of %v, %s",
			s.about, e.Rounds, max(e.Load, s.load.least), &s.load),
	}}
	byName := map[string]samples{}
	for i, p := range sides {
		byName[p.name] = all[i]
		result.Rows = append(result.Rows, contest.Row{
			Name: p.name, Kind: p.kind, Exact: true, Median: contest.Median(all[i].costs), Rounds: all[i].costs,
		})
		result.Seen = append(result.Seen, p.sum(all[i].seen))
	}
	for _, q := range s.questions {
		of, found := byName[q.Of]
		against, alsoFound := byName[q.Against]
		if !found || !alsoFound {
			return Result{}, fmt.Errorf("proxy: %s: a question compares %q with %q: add the missing side", s.Name, q.Of, q.Against)
		}
		result.Ratios = append(result.Ratios, answer(q, of, against))
	}
	return result, nil
}

// answer compares two sides by the meter of the question.
func answer(q contest.Question, of, against samples) contest.Ratio {
	above, below := of.costs, against.costs
	if q.Meter == meterP99 {
		above, below = of.p99(), against.p99()
	}
	r := contest.Compare(q.Of, q.Against, above, below, q.Bar)
	r.Meter = q.Meter
	return r
}

// p99 returns the p99 latency of each round in nanoseconds.
func (s *samples) p99() []float64 {
	var all []float64
	for _, r := range s.seen {
		all = append(all, float64(r.p99))
	}
	return all
}

// sum returns the medians of the rounds.
func (p *process) sum(rounds []report) Seen {
	var rate, p50, p99 []float64
	for _, r := range rounds {
		rate = append(rate, float64(r.requests)/r.took.Seconds())
		p50, p99 = append(p50, float64(r.p50)), append(p99, float64(r.p99))
	}
	return Seen{
		Name: p.name, Rate: contest.Median(rate), Resident: p.resident(),
		P50: time.Duration(contest.Median(p50)), P99: time.Duration(contest.Median(p99)),
	}
}
