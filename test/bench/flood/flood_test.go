package flood

import "testing"

func TestMeasure(t *testing.T) {
	for _, name := range Names() {
		row, err := Measure(name, 5000)
		if err != nil {
			t.Fatal(err)
		}
		if row.PerKey <= 0 || row.HeapInuse == 0 || row.PeakResident == 0 {
			t.Errorf("%s: got %+v, want time and memory", name, row)
		}
		if want := name != "throttled memstore, bounded"; row.Kept != want {
			t.Errorf("%s: the limited key stayed limited: got %v, want %v", name, row.Kept, want)
		}
	}
	if _, err := Measure("nobody", 1); err == nil {
		t.Error("a side that does not exist: got no error")
	}
}
