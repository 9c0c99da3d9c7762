package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// This test runs the commands of the README with a fake clock, from the start of a cycle.
func TestReadme(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, err := shared(service())
		if err != nil {
			t.Fatal(err)
		}
		for cycle, want := range []struct {
			asked  map[string]int
			served map[string]int
			shares string
		}{
			// South has sent one request, so south and north have half of the capacity each.
			{
				map[string]int{"south": 1, "north": 20},
				map[string]int{"south": 1, "north": 5},
				"cycle 1, 6 of 10 used\n" +
					"north  size  5, borrowed 0, lent 0, served  5, refused 15\n" +
					"south  size  5, borrowed 0, lent 0, served  1, refused  0\n",
			},
			// North borrows the capacity that south does not use, in steps over the cycle. South
			// still gets its own half at once.
			{
				map[string]int{"south": 5, "north": 20},
				map[string]int{"south": 5, "north": 5},
				"cycle 2, 10 of 10 used\n" +
					"north  size  9, borrowed 4, lent 0, served  5, refused 15\n" +
					"south  size  1, borrowed 0, lent 4, served  5, refused  0\n",
			},
		} {
			for _, client := range []string{"south", "north"} {
				served := 0
				for range want.asked[client] {
					if get(t, handler, "/v1/product", client).Code == http.StatusOK {
						served++
					}
				}
				if served != want.served[client] {
					t.Errorf("cycle %d: %s has %d admitted requests, want %d", cycle+1, client, served, want.served[client])
				}
			}
			if shares := get(t, handler, "/shares", "").Body.String(); shares != want.shares {
				t.Errorf("cycle %d:\n%swant\n%s", cycle+1, shares, want.shares)
			}
			<-time.After(10 * time.Second)
		}
		w := get(t, handler, "/v1/product", "")
		if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "anonymous_client") {
			t.Errorf("an anonymous request: got %d %s", w.Code, w.Body)
		}
	})
}

func get(t *testing.T, h http.Handler, path, client string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	if client != "" {
		r.Header.Set("X-Client-Id", client)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
