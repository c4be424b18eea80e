// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"strings"
	"time"
)

// Chart describes a chart. The numbers of a sample hold until the next sample.
type Chart struct {
	Title   string
	Areas   []string // names of the stacked areas
	Lines   []Line
	Samples []Sample // sorted by their times
	Marks   []Mark
}

// Sample has the numbers of one time: one for each area and line of the chart. A negative number counts as zero.
type Sample struct {
	At    time.Duration
	Areas []int
	Lines []int
}

// Line is the name of a line, and its style.
type Line struct {
	Name   string
	Color  string // empty: black
	Dashed bool
}

// Mark is an event.
type Mark struct {
	At   time.Duration
	Text string
}

// Sizes of the chart, in pixels.
const (
	width, height        = 720, 260 // of the area of the curves
	left, top            = 40, 30   // of its upper left corner
	below                = 40       // its lower edge
	lineHeight           = 18       // of the legend of the lines and marks
	legendWidth          = 100      // of one name
	ticks                = 6
	replicasBetweenTicks = 5
)

// colors are the colors of the areas.
var colors = []string{"#4477aa", "#ccbb44", "#228833", "#aa3377"}

// SVG returns the chart as SVG.
func (c Chart) SVG() string {
	s := c.scale()
	var b strings.Builder
	foot := top + height + below
	total := foot + lineHeight*len(c.Marks)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", left+width+20, total)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", c.Title)
	for i, name := range c.Areas {
		color := colors[i%len(colors)]
		fmt.Fprintf(&b, `<path fill="%s" d="%s"/>`+"\n", color, s.area(c.Samples, i))
		fmt.Fprintf(&b, `<rect x="%d" y="8" width="12" height="12" fill="%s"/><text x="%d" y="18">%s</text>`+"\n",
			left+legendWidth*i, color, left+legendWidth*i+18, name)
	}
	for n := 0; n <= s.most; n += replicasBetweenTicks {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#bbbbbb"/><text x="%d" y="%.1f" text-anchor="end">%d</text>`+"\n",
			left, left+width, s.y(n), s.y(n), left-6, s.y(n)+4, n)
	}
	for i := range ticks + 1 {
		at := s.end * time.Duration(i) / ticks
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.1fs</text>`+"\n", s.x(at), top+height+20, at.Seconds())
	}
	for i, line := range c.Lines {
		style := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.5"`, line.color())
		if line.Dashed {
			style += ` stroke-dasharray="5 3"`
		}
		at := left + legendWidth*(len(c.Areas)+i)
		fmt.Fprintf(&b, `<polyline %s points="%s"/>`+"\n", style, s.line(c.Samples, i))
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="14" y2="14" %s/><text x="%d" y="18">%s</text>`+"\n", at, at+14, style, at+18, line.Name)
	}
	for i, mark := range c.Marks {
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="black" stroke-dasharray="1 3"/><text x="%.1f" y="%d" font-weight="bold">%d</text>`+"\n",
			s.x(mark.At), s.x(mark.At), top, top+height, s.x(mark.At)+2, top+10, i+1)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%d. %s, at %.1fs</text>`+"\n", left, foot+lineHeight*i, i+1, mark.Text, mark.At.Seconds())
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (l Line) color() string {
	if l.Color == "" {
		return "black"
	}
	return l.Color
}

// scale maps times and numbers to pixels.
type scale struct {
	most int           // the number at the upper edge
	end  time.Duration // the time at the right edge
}

func (c Chart) scale() scale {
	s := scale{most: replicasBetweenTicks, end: time.Second}
	for _, sample := range c.Samples {
		s.most, s.end = max(s.most, stacked(sample.Areas)), max(s.end, sample.At)
		for _, n := range sample.Lines {
			s.most = max(s.most, n)
		}
	}
	return s
}

func (s scale) x(at time.Duration) float64 { return left + width*at.Seconds()/s.end.Seconds() }
func (s scale) y(n int) float64            { return top + height*(1-float64(n)/float64(s.most)) }

// area returns the path of one area, which is stacked on those before it.
func (s scale) area(samples []Sample, i int) string {
	var above, below []string
	for at, sample := range samples {
		from, until := s.x(sample.At), s.x(s.until(samples, at))
		base := stacked(sample.Areas[:i])
		head := stacked(sample.Areas[:i+1])
		above = append(above, fmt.Sprintf("%.1f,%.1f %.1f,%.1f", from, s.y(head), until, s.y(head)))
		below = append([]string{fmt.Sprintf("%.1f,%.1f %.1f,%.1f", until, s.y(base), from, s.y(base))}, below...)
	}
	if len(samples) == 0 {
		return ""
	}
	return "M" + strings.Join(append(above, below...), " ") + "Z"
}

// line returns the points of one line.
func (s scale) line(samples []Sample, i int) string {
	var points []string
	for at, sample := range samples {
		n := s.y(max(0, sample.Lines[i]))
		points = append(points, fmt.Sprintf("%.1f,%.1f %.1f,%.1f", s.x(sample.At), n, s.x(s.until(samples, at)), n))
	}
	return strings.Join(points, " ")
}

// until returns the time until which the numbers of a sample hold.
func (s scale) until(samples []Sample, i int) time.Duration {
	if i+1 < len(samples) {
		return samples[i+1].At
	}
	return s.end
}

func stacked(numbers []int) (sum int) {
	for _, n := range numbers {
		sum += max(0, n)
	}
	return sum
}
