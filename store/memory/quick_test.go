package memory
import ("testing";"time";"fmt";"github.com/headgate/headgate";"math/rand/v2")
func BenchmarkTakeOne(b *testing.B){
 s,_:=New(Config{MaxMemory:64<<20,BlockShare:-1})
 for _,l:=range []headgate.Limit{{Count:1000000000,Per:time.Second},{Count:7,Per:time.Second,Burst:1<<30},{Count:1,Per:time.Hour}}{
 id,err:=s.Prepare(headgate.Policy{Limit:l}); if err!=nil{b.Fatal(err)}
 b.Run(l.String(),func(b *testing.B){
 var d headgate.Decision
 op:=headgate.Op{Key:"customer-1234567",Policy:id,Cost:1}
 b.ReportAllocs()
 for b.Loop(){ s.Take(&op,&d)}})}
}
func BenchmarkMillion(b *testing.B){
 s,_:=New(Config{MaxMemory:64<<20,BlockShare:-1})
 id,_:=s.Prepare(headgate.Policy{Limit:headgate.Limit{Count:10,Per:time.Second}})
 keys:=make([]string,1<<20); for i:=range keys{keys[i]=fmt.Sprintf("customer-%07d",i)}
 var d headgate.Decision
 for _,k:=range keys { s.Take(&headgate.Op{Key:k,Policy:id,Cost:1},&d)}
 b.Log(s.Stats())
 b.Run("uniform",func(b *testing.B){ b.RunParallel(func(pb *testing.PB){ var d headgate.Decision; r:=rand.New(rand.NewPCG(rand.Uint64(),2)); for pb.Next(){ op:=headgate.Op{Key:keys[r.Uint32()>>12],Policy:id,Cost:1}; s.Take(&op,&d)}})})
 b.Run("zipf",func(b *testing.B){ b.RunParallel(func(pb *testing.PB){ var d headgate.Decision; r:=rand.New(rand.NewPCG(rand.Uint64(),2)); z:=rand.NewZipf(r,1.1,1,1<<20-1); ks:=make([]string,1<<16);for i:=range ks{ks[i]=keys[z.Uint64()]}; i:=0; for pb.Next(){ i++; op:=headgate.Op{Key:ks[i&0xffff],Policy:id,Cost:1}; s.Take(&op,&d)}})})
 b.Run("batchuniform",func(b *testing.B){ b.RunParallel(func(pb *testing.PB){ var ds [16]headgate.Decision; var ks [16]string; r:=rand.New(rand.NewPCG(rand.Uint64(),2)); n:=0; for pb.Next(){ ks[n]=keys[r.Uint32()>>12]; n++; if n==16 {n=0; s.TakeMany(ks[:],id,1,ds[:])}}})})
}
func BenchmarkSince(b *testing.B){ s:=time.Now(); for b.Loop(){ sinkT+=time.Since(s)}}
var sinkT time.Duration
