package limiter
import ("testing";"context";"time";"github.com/headgate/headgate")
var sd headgate.Decision
func BenchmarkSince(b *testing.B){ s:=time.Now(); var x time.Duration; for b.Loop(){ x+=time.Since(s)}; _ = x}
func BenchmarkSingle(b *testing.B){ s,_:=NewSingle(headgate.Limit{Count:1e9,Per:time.Second},Config{}); for b.Loop(){ sd,_=s.Take(1)}}
func BenchmarkSingleDeny(b *testing.B){ s,_:=NewSingle(headgate.Limit{Count:1,Per:time.Hour},Config{}); for b.Loop(){ sd,_=s.Take(1)}}
func BenchmarkKeyed(b *testing.B){ s,_:=New(headgate.Limit{Count:1e9,Per:time.Second},Config{}); c:=context.Background(); for b.Loop(){ sd,_=s.Take(c,"customer-1234567",1)}}
func BenchmarkKeyedDeny(b *testing.B){ s,_:=New(headgate.Limit{Count:1,Per:time.Hour},Config{}); c:=context.Background(); for b.Loop(){ sd,_=s.Take(c,"customer-1234567",1)}}
