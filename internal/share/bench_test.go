package share

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// mixed returns n clients with demands below, at and above a default share of 800.
func mixed(n int) []Client {
	r := rand.New(rand.NewPCG(9, 1))
	list := make([]Client, n)
	for i := range list {
		list[i] = Client{fmt.Sprintf("client-%05d", i), 1 + r.Int64N(3), r.Int64N(2400)}
	}
	return list
}

func BenchmarkDivide(b *testing.B) {
	for _, division := range Divisions() {
		for _, n := range []int{4, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", division, n), func(b *testing.B) {
				terms, list := Terms{Division: division, Capacity: int64(n)*800 + 1, Reservation: 10}, mixed(n)
				var s Scratch
				b.ReportAllocs()
				for b.Loop() {
					s.Divide(terms, list)
				}
			})
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	var s Scratch
	for name, split := range map[string]func(int64, []Client) []int64{"proportional": s.Proportional, "fill": s.Fill} {
		for _, n := range []int{4, 1000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				list := mixed(n)
				b.ReportAllocs()
				for b.Loop() {
					split(int64(n)*400+1, list)
				}
			})
		}
	}
}
