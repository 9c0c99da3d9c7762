//go:build soak

package acceptance

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// overloaded is a load on a service of one core: open loop, with retries.
type overloaded struct {
	t      *testing.T
	url    string
	client *http.Client

	mu   sync.Mutex
	all  []*wish
	good time.Duration // the work of answers in time, in the measured time
	from time.Time     // of the measured time
	to   time.Time
}

// wish is a logical request.
type wish struct {
	at       time.Time
	tenant   int
	class    string
	path     string
	work     time.Duration
	answered bool
}

const wishDeadline = 500 * time.Millisecond

// meanWork is the mean of 90 % requests of 5 ms and 10 % of 50 ms.
const meanWork = 9500 * time.Microsecond

// run sends requests for a time: load is in parts of one core. With liar, tenant 0 sends 90 % of
// them, all critical_plus.
func (o *overloaded) run(load float64, liar bool, lasting time.Duration, random *rand.Rand) {
	var sent sync.WaitGroup
	defer sent.Wait()
	next := time.Now()
	for end := next.Add(lasting); next.Before(end); {
		next = next.Add(time.Duration(random.ExpFloat64() * float64(meanWork) / load))
		<-time.After(time.Until(next))
		w := draw(random, liar)
		o.mu.Lock()
		o.all = append(o.all, w)
		o.mu.Unlock()
		sent.Go(func() { o.wish(w) })
	}
}

func draw(random *rand.Rand, liar bool) *wish {
	w := &wish{at: time.Now(), tenant: random.IntN(10), class: "sheddable_plus", path: "/short?ms=5", work: 5 * time.Millisecond}
	switch x := random.IntN(100); {
	case x < 2:
		w.class = "critical_plus"
	case x < 10:
		w.class = "critical"
	case x < 50:
		w.class = "sheddable"
	}
	if random.IntN(10) == 0 {
		w.path, w.work = "/long?ms=50", 50*time.Millisecond
	}
	if liar && random.IntN(10) > 0 {
		w.tenant, w.class = 0, "critical_plus"
	} else if liar {
		w.tenant = 1 + random.IntN(9)
	}
	return w
}

// wish makes up to three attempts.
func (o *overloaded) wish(w *wish) {
	for attempt := range 3 {
		ok, retryAfter := o.attempt(w)
		if ok {
			return
		}
		pause := time.Duration(float64(50*time.Millisecond<<attempt) * (0.5 + rand.Float64()))
		if retryAfter > 0 {
			pause = max(pause, time.Duration(float64(retryAfter)*(1+rand.Float64()/2)))
		}
		<-time.After(pause)
	}
}

func (o *overloaded) attempt(w *wish) (ok bool, retryAfter time.Duration) {
	ctx, cancel := context.WithTimeout(o.t.Context(), wishDeadline)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, o.url+w.path, http.NoBody)
	if err != nil {
		o.t.Error(err)
		return true, 0
	}
	r.Header.Set("X-Client-Id", strconv.Itoa(w.tenant))
	r.Header.Set("Headgate-Criticality", w.class)
	answer, err := o.client.Do(r)
	if err != nil {
		return false, 0
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return false, 0
	}
	if answer.StatusCode != http.StatusOK {
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return false, min(time.Duration(seconds)*time.Second, time.Second)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	w.answered = true
	if now := time.Now(); !now.Before(o.from) && now.Before(o.to) {
		o.good += w.work
	}
	return true, 0
}

// part returns the part of the chosen requests of the measured time that were answered in time.
func (o *overloaded) part(from, to time.Time, chosen func(*wish) bool) float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	all, good := 0, 0
	for _, w := range o.all {
		if !w.at.Before(from) && w.at.Before(to) && chosen(w) {
			all++
			if w.answered {
				good++
			}
		}
	}
	return float64(good) / float64(max(all, 1))
}

// unloaded measures the work that the service does in a second, without overload.
func unloaded(t *testing.T, url string, client *http.Client) float64 {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	var done time.Duration
	const lasting = 5 * time.Second
	end := time.Now().Add(lasting)
	for range 2 {
		all.Go(func() {
			for time.Now().Before(end) {
				answer, err := client.Get(url + "/short?ms=5")
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				mu.Lock()
				done += 5 * time.Millisecond
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return float64(done) / float64(lasting)
}

const burningConfiguration = `version: 1
rules: []
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
identity: {trusted_proxies: [127.0.0.1]}
throttle: {mode: %s, concurrency: 4, deadline: 500ms, tenant: "header:X-Client-Id"}
`

// TestSoakOverload sends five times what a service of one core can do, through the proxy, and
// then half of it.
func TestSoakOverload(t *testing.T) {
	for _, c := range []struct {
		mode string
		liar bool
	}{{"off", false}, {"enforce", false}, {"enforce", true}} {
		t.Run(fmt.Sprintf("%s, liar %v", c.mode, c.liar), func(t *testing.T) { overload(t, c.mode, c.liar) })
	}
}

func overload(t *testing.T, mode string, liar bool) {
	t.Helper()
	address := upstreamApart(t, burningUpstream+"=1", "GOMAXPROCS=1")
	i := launch(t, file(t, fmt.Sprintf(burningConfiguration, "http://"+address, mode)+adminAnywhere))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4000}}
	most := unloaded(t, "http://"+i.Proxy, client)
	o := &overloaded{t: t, url: "http://" + i.Proxy, client: client}
	began := time.Now()
	o.from, o.to = began.Add(5*time.Second), began.Add(25*time.Second)
	random := rand.New(rand.NewPCG(1, 1))
	o.run(5*most, liar, 25*time.Second, random)
	calm := time.Now()
	o.run(0.5*most, false, 12*time.Second, random)
	goodput := float64(o.good) / float64(o.to.Sub(o.from)) / most
	critical := o.part(o.from, o.to, func(w *wish) bool {
		return (w.class == "critical" || w.class == "critical_plus") && !(liar && w.tenant == 0)
	})
	after := o.part(calm.Add(5*time.Second), calm.Add(12*time.Second), func(*wish) bool { return true })
	polite := 1.0
	for tenant := 1; tenant < 10; tenant++ {
		polite = min(polite, o.part(o.from, o.to, func(w *wish) bool { return w.tenant == tenant }))
	}
	t.Logf("unloaded %.3f cores; goodput %.3f of it, critical %.3f, from 5 s after it %.3f, worst polite tenant %.3f", most, goodput, critical, after, polite)
	switch {
	case mode == "off" && goodput > 0.5:
		t.Errorf("without a throttle the goodput is %.3f: the load overloads nothing", goodput)
	case mode == "off":
	case goodput < 0.8 || critical < 0.95 || after < 0.99:
		t.Errorf("want a goodput of 0.8, 0.95 of the critical requests, and 0.99 from 5 s after the overload")
	case liar && polite < 0.9:
		t.Errorf("want 0.9 of the requests of each polite tenant")
	}
}
