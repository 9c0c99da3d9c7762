package acceptance

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// burningUpstream names the variable that makes an upstream burn CPU time.
const burningUpstream = "HEADGATE_TEST_BURN"

// burner is a service that burns as many milliseconds of CPU time as the request's query says. It
// does not stop when the client leaves. It reports its work.
type burner struct{ perMillisecond int }

var burnt atomic.Uint64 // so that the compiler keeps the loop

func newBurner() *burner {
	const rounds = 20_000_000
	started := time.Now()
	spin(rounds)
	return &burner{perMillisecond: int(rounds / (float64(time.Since(started)) / float64(time.Millisecond)))}
}

func spin(rounds int) {
	x := uint64(88172645463325252)
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	burnt.Add(x)
}

func (b *burner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Query().Get("ms"))
	if err != nil || n < 0 || n > 1000 {
		http.Error(w, "ms must be 0 to 1000", http.StatusBadRequest)
		return
	}
	spin(n * b.perMillisecond)
	w.Header().Set("Headgate-Work", fmt.Sprintf("cpu=%dms", n))
	fmt.Fprintln(w, "fine")
}
