package throttle

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// maxFuzzed bounds a trace. The twin's effort grows with the square of the number of calls, and
// the fuzzer tries to shorten each new input byte by byte.
const maxFuzzed = 512

// FuzzThrottler compares a Throttler with its twin. The data chooses the configuration and then
// each call. When the data ends, all requests end.
func FuzzThrottler(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 500)) // The same request arrives again and again.
	f.Add(bytes.Repeat([]byte{255}, 500))
	f.Add(bytes.Repeat([]byte{3, 70, 130, 200, 2, 61}, 80))
	for seed := range uint64(5) {
		random, data := rand.New(rand.NewPCG(seed, 6)), make([]byte, 32<<seed)
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

// drawn reads a number below n: one byte chooses one of 256 equal parts. Small inputs then have
// many calls. After the end of the data the number is 0.
func drawn(data *[]byte, n int) int {
	if len(*data) == 0 {
		return 0
	}
	x := int((*data)[0]) * n / 256
	*data = (*data)[1:]
	return x
}
