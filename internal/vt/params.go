package vt

// params are the numbers of a control sequence. A parameter that is not given is
// 0, a sub-parameter that is not given -1.
type params struct {
	list  [maxParams]int32
	subs  [maxParams]uint8 // where each parameter's sub-parameters begin in sub
	n     int
	sub   [maxParams]int32
	nsub  int
	inSub bool

	rejected    bool // a parameter too many came: its digits go nowhere
	subRejected bool
}

func (a *params) reset() {
	*a = params{n: 1}
}

// put takes a digit or a separator.
func (a *params) put(c byte) {
	switch c {
	case ';':
		a.inSub = false
		if a.n == maxParams {
			a.rejected = true
			return
		}
		a.list[a.n] = 0
		a.subs[a.n] = uint8(a.nsub)
		a.n++
	case ':':
		a.inSub = true
		if a.rejected || a.nsub == maxParams {
			a.subRejected = true
			return
		}
		a.sub[a.nsub] = -1
		a.nsub++
	default:
		a.digit(int64(c - '0'))
	}
}

func (a *params) digit(d int64) {
	if a.rejected || a.inSub && (a.subRejected || a.nsub == 0) {
		return
	}
	n := &a.list[a.n-1]
	if a.inSub {
		n = &a.sub[a.nsub-1]
	}
	if *n < 0 {
		*n = int32(d)
		return
	}
	*n = int32(min(int64(*n)*10+d, maxParam))
}

// at is parameter i, 0 where there are fewer.
func (a *params) at(i int) int {
	if i >= a.n {
		return 0
	}
	return int(a.list[i])
}

// count is parameter i as a number of something: at least 1, at most limit.
func (a *params) count(i, limit int) int {
	return clamp(a.at(i), 1, max(1, limit))
}

// subsOf are the sub-parameters of parameter i.
func (a *params) subsOf(i int) []int32 {
	end := a.nsub
	if i+1 < a.n {
		end = int(a.subs[i+1])
	}
	return a.sub[a.subs[i]:end]
}
