// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Faults are the lines of an Error.
type Faults []string

// Add adds a fault of the field at path.
func (f *Faults) Add(path, reason, accept string) {
	*f = append(*f, path+": "+reason+"; accepted: "+accept)
}

// Type adds a fault if the file is of another apiVersion or kind.
func (f *Faults) Type(have metav1.TypeMeta, apiVersion, kind string) {
	if have.APIVersion != apiVersion {
		f.Add("apiVersion", fmt.Sprintf("is %q", have.APIVersion), apiVersion)
	}
	if have.Kind != kind {
		f.Add("kind", fmt.Sprintf("is %q", have.Kind), kind)
	}
}

// Address adds a fault if address is not that of a listener.
func (f *Faults) Address(path, address string) {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		f.Add(path, fmt.Sprintf("%q is no address", address), "HOST:PORT or :PORT")
	} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		f.Add(path, fmt.Sprintf("%q has no valid port", address), "a port from 0 to 65535")
	}
}

// Between adds a fault if d is not from least to most.
func (f *Faults) Between(path string, d *metav1.Duration, least, most time.Duration) {
	if d.Duration < least || d.Duration > most {
		f.Add(path, fmt.Sprintf("is %v", d.Duration), fmt.Sprintf("%v to %v", least, most))
	}
}

// Programs adds a fault for each of the paths that is not absolute.
func (f *Faults) Programs(path string, paths []string) {
	for i, p := range paths {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p {
			f.Add(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%q is not an absolute path", p), "the absolute path of a program")
		}
	}
}

// Log adds a fault for a wrong format or level.
func (f *Faults) Log(format string, level int) {
	if format != "json" && format != "text" {
		f.Add("log.format", fmt.Sprintf("is %q", format), "json or text")
	}
	if level < 0 || level > 10 {
		f.Add("log.level", fmt.Sprintf("is %d", level), "0 to 10")
	}
}

// Default sets a field that is not set.
func Default[T comparable](field *T, standard T) {
	if *field == *new(T) {
		*field = standard
	}
}

// DefaultDuration sets a duration that is not set.
func DefaultDuration(field **metav1.Duration, standard time.Duration) {
	if *field == nil {
		*field = &metav1.Duration{Duration: standard}
	}
}
