package middlewares
import ("testing";"golang.org/x/sys/unix";"os";"fmt";"github.com/headgate/headgate/test/bench/limiters";"net/http")
func cpu() int64 { var u unix.Timespec; unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &u); return u.Nano() }
func TestCPU(t *testing.T) {
	if os.Getenv("CPU")=="" {t.Skip()}
	const n = 300000
	for _, lim := range []limiters.Limit{limiters.Ample(), limiters.Spent()} {
	type side struct{name string; h http.Handler; best int64}
	var ss []*side
	for _, m := range All() { h,_ := m.New(lim, Service()); ss = append(ss, &side{m.Name,h,1<<60}) }
	reqs := Requests(1024)
	for _, s := range ss { Serve(s.h, reqs, 0, 1024) }
	for range 12 { for _, s := range ss { 
		b := cpu(); Serve(s.h, reqs, 0, n); if d := (cpu()-b)/(n/1000); d < s.best {s.best=d} } }
	for _, s := range ss { fmt.Printf("%-34s %.1f ns\n", s.name, float64(s.best)/1000) }
	}
}
func BenchmarkOurs(b *testing.B) {
	h, _ := newHeadgate(limiters.Ample(), Service()); reqs := Requests(1024)
	b.ReportAllocs(); b.ResetTimer(); Serve(h, reqs, 0, b.N)
}
func BenchmarkDenied(b *testing.B) {
	h, _ := newHeadgate(limiters.Spent(), Service()); reqs := Requests(1024)
	Serve(h, reqs, 0, 1024)
	b.ReportAllocs(); b.ResetTimer(); Serve(h, reqs, 0, b.N)
}
