package throttler_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/middleware/httplimit"
)

// A service gets sixteen requests at a time. It reports its work, which the client does not see.
func Example() {
	stage, err := throttler.New(throttler.Config{
		Limits: throttler.Limits{Concurrency: 16, Deadline: 500 * time.Millisecond},
		Class:  throttler.SheddablePlus,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := guard.New(guard.Config{Stages: []guard.Stage{stage}})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := httplimit.New(g, httplimit.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(throttler.FieldWork, "cpu=12ms")
		left, err := strconv.Atoi(r.Header.Get(throttler.FieldTimeout)) // milliseconds
		fmt.Fprintln(w, r.Header.Get(throttler.FieldCriticality), 0 < left && left <= 500, err)
	}))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	fmt.Print(w.Body)
	fmt.Printf("reported to the client: %q\n", w.Header().Get(throttler.FieldWork))
	// Output:
	// sheddable_plus true <nil>
	// reported to the client: ""
}
