package bench

import (
	"bufio"
	"strconv"
	"strings"
	"testing"
)

// scrape returns what /metrics shows, each series by its name with labels.
func (o *installation) scrape(b *testing.B) map[string]float64 {
	b.Helper()
	response, err := o.get(b.Context(), "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	series := make(map[string]float64)
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, text, found := cutLast(lines.Text())
		if !found || strings.HasPrefix(name, "#") {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			b.Fatalf("read metric %q: %v", lines.Text(), err)
		}
		series[name] = value
	}
	if err := lines.Err(); err != nil {
		b.Fatal(err)
	}
	return series
}

func cutLast(line string) (name, value string, found bool) {
	if strings.HasPrefix(line, "#") {
		return "", "", false
	}
	at := strings.LastIndexByte(line, ' ')
	if at < 0 {
		return "", "", false
	}
	return line[:at], line[at+1:], true
}

// grown returns by how much the series of a metric grew together, and which
// of them did.
func grown(before, after map[string]float64, metric string) (total float64, which []string) {
	for name, value := range after {
		if by := value - before[name]; (name == metric || strings.HasPrefix(name, metric+"{")) && by > 0 {
			total += by
			which = append(which, name+" +"+strconv.FormatFloat(by, 'f', -1, 64))
		}
	}
	return total, which
}
