package httpdecide

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestMemoryOfMessages: a message and its answers take at most what the service counts for it.
func TestMemoryOfMessages(t *testing.T) {
	if race.On {
		return // The race detector takes memory of its own.
	}
	list := func(one string, n int) string { return "[" + strings.Repeat(one+",", n-1) + one + "]" }
	var names, descriptors []string
	for i := range 64 {
		names = append(names, fmt.Sprintf(`"%d":""`, i))
		descriptors = append(descriptors, "{}")
	}
	entries := strings.Join(names, ",")
	for what, body := range map[string]string{
		"one empty request":     "{}",
		"empty requests":        list("{}", 1000),
		"decided requests":      list(`{"path":"/a","headers":{"x-client-id":"a"}}`, 1000),
		"many entries":          list(`{"headers":{`+entries+`},"cookies":{`+entries+`},"descriptors":[`+strings.Join(descriptors[:32], ",")+`]}`, 1000),
		"too many entries":      list(`{"descriptors":[`+strings.Join(append(descriptors, descriptors...), ",")+`]}`, 1000),
		"escaped texts":         list(`{"path":"/`+strings.Repeat(`\n`, 1000)+`"}`, 1000),
		"long texts":            list(`{"subject":"`+strings.Repeat(`x`, 4000)+`"}`, 1000),
		"a very long text":      `{"path":"` + strings.Repeat(`x`, 3<<20) + `"}`,
		"a very long name":      `{"` + strings.Repeat(`x`, 3<<20) + `":1}`,
		"deep lists":            strings.Repeat(`[`, 1<<20),
		"faults in all of them": list(`{"ip":"`+strings.Repeat("x", 100)+`"}`, 1000),
	} {
		s := serviceOf(t, postRules)
		least := ^uint64(0)
		for range 3 {
			m := &message{body: []byte(body)}
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if m.decode(s.guard, nil) == nil {
				m.batch.Decide(t.Context())
				m.encode(s, nil)
			}
			runtime.ReadMemStats(&after)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		want := uint64(len(body)*bodyFactor + min(len(body)/shortest, remote.MaxRequests)*requestBytes + 16<<10)
		t.Logf("%s: %d of %d bytes", what, least, want)
		if least > want {
			t.Errorf("%s: %d bytes, want at most %d", what, least, want)
		}
	}
}
