package throttle

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// maxFuzzed bounds a trace. The twin's effort grows with the square of the number of calls.
const maxFuzzed = 4096

// FuzzThrottler compares a Throttler with its twin. The data chooses the configuration and then
// each call. When the data ends, all requests end.
func FuzzThrottler(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 500)) // The same request arrives again and again.
	f.Add(bytes.Repeat([]byte{255}, 500))
	f.Add(bytes.Repeat([]byte{3, 7, 1, 70, 2, 61}, 300))
	for seed := range uint64(5) {
		random, data := rand.New(rand.NewPCG(seed, 6)), make([]byte, 200<<seed)
		for i := range data {
			data[i] = byte(random.IntN(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), maxFuzzed)]
		d := twinsOf(t, func(n int) int { return drawn(&data, n) }, map[string]int{})
		d.log("fuzz")
		for len(data) > 0 {
			d.step()
		}
		d.empty()
	})
}

// drawn reads a number below n, in as few bytes as n-1 has. After the end of the data it is 0.
func drawn(data *[]byte, n int) int {
	x := 0
	for m := n - 1; m > 0 && len(*data) > 0; m >>= 8 {
		x, *data = x<<8|int((*data)[0]), (*data)[1:]
	}
	return x % n
}
