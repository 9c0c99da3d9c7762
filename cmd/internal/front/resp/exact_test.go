package resp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/fits"
)

// TestLargestLimits: a store in memory and one in Redis accept the same limits, and answer alike.
func TestLargestLimits(t *testing.T) {
	_, memory := startServer(t, new(clock), 0)
	redis, _ := onRedis(t, storePatience)
	for i, row := range []struct{ arguments, want string }{
		{"0 2251799813685248 1", ":0 :1 :0 :-1 :0"},
		{"0 2251799813685249 1", "-ERR count 2251799813685249 is too large for max_burst 0: send at most 2251799813685248"},
		{"0 9007199254740991 1", "-ERR count 9007199254740991 is too large for max_burst 0: send at most 2251799813685248"},
		{"0 9007199254740991 1 9007199254740991", "-ERR count 9007199254740991 is too large for max_burst 0"},
		{"4503599627370494 4503599627370496 31708800", "-ERR count 4503599627370496 is too large for max_burst 4503599627370494: send at most 1"},
		{"4503599627370495 1000000 1", "-ERR max_burst 4503599627370495 is too large: send at most 4503599627370494"},
		{"4503599627370494 1000000000 1 9007199254740991", "-ERR count 1000000000 is too large"},
		{"4503599627369999 3000000 1 9007199254740991", "-ERR count 3000000 is too large"},
		{"1000000000 1000000 1 9007199254740991", ":1 :1000000001 :1000000001 :-1 :0"},
		{"1000000000 400000000 1 1000000001", ":0 :1000000001 :0 :-1 :3"},
		{"9999999 450000000 1 10000000", ":0 :10000000 :0 :-1 :1"},
	} {
		send := fmt.Sprintf("CL.THROTTLE k%d %s\r\n", i, row.arguments)
		for what, at := range map[string]string{"memory": memory, "Redis": redis} {
			conn := dial(t, at)
			if _, err := fmt.Fprint(conn, send); err != nil {
				t.Fatal(err)
			}
			got := answer(t, conn, 1)
			if got[0] == "*5" {
				got = answer(t, conn, 5)
			}
			if text := strings.Join(got, " "); !strings.HasPrefix(text, row.want) {
				t.Errorf("%s: %s: got %s, want %s", what, strings.TrimSpace(send), text, row.want)
			}
		}
	}
}

// TestExact: the bound is that of the scripts of Redis, for the limit under which a store counts.
func TestExact(t *testing.T) {
	random, refused, valid := rand.New(rand.NewPCG(3, 4)), 0, 0
	round := []int64{1, 2, 10, 60, 1000, 3600, 86400, 1_000_000, 1 << 20, 1 << 51, 1 << 52, headgate.MaxUnits}
	some := func(most int64) int64 {
		n := 1 + random.Int64N(1<<random.IntN(53))
		if random.IntN(2) == 0 {
			n = round[random.IntN(len(round))] * (1 + random.Int64N(3)) * round[random.IntN(4)]
		}
		return max(1, min(n+random.Int64N(3)-1, most))
	}
	for range 20_000 {
		l := headgate.Limit{Count: some(headgate.MaxUnits), Burst: some(headgate.MaxUnits), Per: time.Duration(some(maxSeconds)) * time.Second}
		p := headgate.Policy{Algorithm: headgate.TokenBucket, Limit: l}
		if _, err := limit.Compile(p); err != nil {
			continue
		}
		valid++
		p.Limit = guard.SharedBucket(l)
		switch err := fits.Redis(p); {
		case (err == nil) != exact(l):
			t.Fatalf("%+v: exact gives %t, and Redis %v", l, exact(l), err)
		case err != nil:
			refused++
		}
	}
	if refused < 100 || valid-refused < 100 {
		t.Errorf("%d of %d limits are refused", refused, valid)
	}
}

// TestTooLarge: the limit that a refusal names is accepted.
func TestTooLarge(t *testing.T) {
	for _, text := range []string{"CL.THROTTLE k 7 9007199254740991 1", "CL.THROTTLE k 4503599627370494 9007199254740990 3", "CL.THROTTLE k 4503599627370495 1 1"} {
		var args [][]byte
		for word := range strings.FieldsSeq(text) {
			args = append(args, []byte(word))
		}
		_, err := readSent(args, 0, 1)
		if err == nil {
			t.Fatalf("%s is accepted", text)
		}
		_, most, _ := strings.Cut(err.Error(), "send at most ")
		at := slices.Index([]bool{strings.HasPrefix(err.Error(), "max_burst"), strings.HasPrefix(err.Error(), "count")}, true)
		args[2+at] = []byte(most)
		if _, err := readSent(args, 0, 1); err != nil {
			t.Errorf("%s: with %s: %v", text, most, err)
		}
	}
}
