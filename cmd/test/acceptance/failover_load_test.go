package acceptance

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// shot is one request of a load, with its result.
type shot struct {
	path   string
	status int // 0 without an answer
	// late is the delay of the answer after the due time of the request.
	late time.Duration
	err  error
}

// openLoop sends requests for paths in turns at their due times, also while answers are slow. So
// a slow server gets as many requests as a fast one.
type openLoop struct {
	base   string
	paths  []string
	rate   int // requests a second, evenly spaced
	client *http.Client
	room   chan struct{} // bounds the requests in flight
	stop   chan struct{}
	all    sync.WaitGroup

	mu    sync.Mutex
	shots []shot // answered requests; guarded by mu
}

// mostOnTheWay bounds the requests of a load in flight. Further due requests wait, and are late
// by that time.
const mostOnTheWay = 2000

// newLoad gives a load that has not started.
func newLoad(base string, rate int, paths []string) *openLoop {
	return &openLoop{
		base: base, paths: paths, rate: rate,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: mostOnTheWay}, Timeout: patience},
		room:   make(chan struct{}, mostOnTheWay), stop: make(chan struct{}),
	}
}

func startLoad(t *testing.T, base string, rate int, paths []string) *openLoop {
	t.Helper()
	l := newLoad(base, rate, paths)
	l.all.Go(l.run)
	t.Cleanup(func() { l.end() })
	return l
}

func (l *openLoop) run() {
	began := time.Now()
	for n := 0; ; n++ {
		due := began.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
		select {
		case <-l.stop:
			return
		case <-time.After(time.Until(due)):
		}
		l.room <- struct{}{}
		l.all.Go(func() {
			s := l.ask(l.paths[n%len(l.paths)])
			s.late = time.Since(due)
			l.mu.Lock()
			l.shots = append(l.shots, s)
			l.mu.Unlock()
			<-l.room
		})
	}
}

func (l *openLoop) ask(path string) shot {
	resp, err := l.client.Get(l.base + path)
	if err != nil {
		return shot{path: path, err: err}
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return shot{path: path, status: resp.StatusCode, err: err}
}

// answered gives the number of answers.
func (l *openLoop) answered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.shots)
}

// end stops the load, waits for the open answers, and gives all of them. A second call has no
// effect.
func (l *openLoop) end() []shot {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.all.Wait()
	l.client.CloseIdleConnections()
	return l.shots
}

// quantile gives the smallest value that a part p of all does not exceed. It sorts all in place.
func quantile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(int(p*float64(len(all))), len(all)-1)]
}
