package config
import ("testing";"fmt";"strings")
func BenchmarkBig(b *testing.B){ var t strings.Builder; t.WriteString("version: 1\nrules:\n"); for i:=0;i<60000;i++{fmt.Fprintf(&t,"  - {name: r%d, match: {path: /v1/%d}, key: [ip], limits: [500/2s, 2000/10s]}\n", i, i)}
 x:=[]byte(t.String()); b.ReportAllocs(); for b.Loop() { if _,err:=Parse("x",x); err!=nil {b.Fatal(err)} } }
