package parcel

import "testing"

func TestPrice(t *testing.T) {
	if p, err := Price(30); p != 530 || err != nil {
		t.Fatal(p, err)
	}
	if _, err := Price(31); err != ErrHeavy {
		t.Fatal(err)
	}
}

func TestLate(t *testing.T) {
	if !Late(9, 8) || Late(7, 8) {
		t.Fatal("a parcel is late after it is due")
	}
}

func TestWait(t *testing.T) {
	if n := Wait(3); n != 2 {
		t.Fatal(n)
	}
}
