// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
)

// faults collects the faults of a configuration.
type faults []string

// add adds a fault of the field at path.
func (f *faults) add(path, reason, accept string) {
	*f = append(*f, path+": "+reason+"; accepted: "+accept)
}

// check returns a line for each fault.
func (c *Configuration) check() []string {
	var f faults
	if c.APIVersion != APIVersion {
		f.add("apiVersion", fmt.Sprintf("is %q", c.APIVersion), APIVersion)
	}
	if c.Kind != Kind {
		f.add("kind", fmt.Sprintf("is %q", c.Kind), Kind)
	}
	c.Serving.check(&f)
	c.Source.check(&f)
	c.Authentication.check(&f)
	c.checkCatalog(&f)
	if c.Operators != nil && c.Operators.Group == "" {
		f.add("operators.group", "is missing", "the name of a group; or leave operators out")
	}
	if c.Fanout != nil && c.Fanout.LogFile == "" {
		f.add("fanout.logFile", "is missing", "the path of a file that survives restarts; or leave fanout out")
	}
	c.Limits.check(&f)
	if c.Log.Format != "json" && c.Log.Format != "text" {
		f.add("log.format", fmt.Sprintf("is %q", c.Log.Format), "json or text")
	}
	if c.Log.Level < 0 || c.Log.Level > 10 {
		f.add("log.level", fmt.Sprintf("is %d", c.Log.Level), "0 to 10")
	}
	f.address("health.address", c.Health.Address)
	if c.Health.Address == c.Serving.Address && !strings.HasSuffix(c.Health.Address, ":0") {
		f.add("health.address", "is the address of serving.address", "another port")
	}
	f.between("drain.delay", c.Drain.Delay, 0, 10*time.Minute)
	f.between("drain.timeout", c.Drain.Timeout, time.Second, time.Hour)
	return f
}

func (s *Serving) check(f *faults) {
	f.address("serving.address", s.Address)
	if s.CertificateFile == "" {
		f.add("serving.certificateFile", "is missing", "the path of a certificate in PEM")
	}
	if s.KeyFile == "" {
		f.add("serving.keyFile", "is missing", "the path of the certificate's key in PEM")
	}
	for i, origin := range s.AllowedOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			f.add(fmt.Sprintf("serving.allowedOrigins[%d]", i), fmt.Sprintf("%q is no origin", origin), "https://HOST[:PORT]")
		}
	}
}

func (s *Source) check(f *faults) {
	given := 0
	for _, set := range []bool{s.File != "", s.Directory != "", s.Central != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		f.add("source", fmt.Sprintf("%d of its fields file, directory and central are set", given), "exactly one")
	}
	f.between("source.cacheWait", s.CacheWait, time.Second, 10*time.Minute)
	for i, path := range s.ExecPlugins {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path {
			f.add(fmt.Sprintf("source.execPlugins[%d]", i), fmt.Sprintf("%q is not an absolute path", path), "the absolute path of a program")
		}
	}
}

func (c *Configuration) checkCatalog(f *faults) {
	if len(c.CatalogResources) > 32 {
		f.add("catalogResources", fmt.Sprintf("has %d types", len(c.CatalogResources)), "at most 32")
	}
	if _, bad := c.Catalog(); bad >= 0 {
		f.add(fmt.Sprintf("catalogResources[%d]", bad), fmt.Sprintf("%q is no type", c.CatalogResources[bad]),
			"RESOURCE.VERSION.GROUP, or RESOURCE.VERSION for the core group, as in couchdbs.v1.loodse or secrets.v1")
	}
}

// Catalog returns the types of CatalogResources. If one is wrong, it returns its index, otherwise -1.
func (c *Configuration) Catalog() (types []schema.GroupVersionResource, bad int) {
	for i, text := range c.CatalogResources {
		parts := strings.SplitN(text, ".", 3)
		if len(parts) < 2 || parts[0] == "" || !strings.HasPrefix(parts[1], "v") || len(parts) == 3 && parts[2] == "" {
			return nil, i
		}
		t := schema.GroupVersionResource{Resource: parts[0], Version: parts[1]}
		if len(parts) == 3 {
			t.Group = parts[2]
		}
		types = append(types, t)
	}
	return types, -1
}

func (l *Limits) check(f *faults) {
	for _, field := range []struct {
		path  string
		value int
		least int
	}{
		{"limits.requests", l.Requests, 2},
		{"limits.requestsPerRegion", l.RequestsPerRegion, 2},
		{"limits.requestsPerUser", l.RequestsPerUser, 1},
		{"limits.streamsPerUser", l.StreamsPerUser, 1},
		{"limits.waiting", l.Waiting, -1},
	} {
		if field.value < field.least {
			f.add(field.path, fmt.Sprintf("is %d", field.value), fmt.Sprintf("%d or more", field.least))
		}
	}
	if l.RegionQPS < 0 && l.RegionQPS != -1 {
		f.add("limits.regionQPS", fmt.Sprintf("is %v", l.RegionQPS), "requests per second; or leave it out")
	}
	if l.SharedWatchBytes < 1<<20 {
		f.add("limits.sharedWatchBytes", fmt.Sprintf("is %d", l.SharedWatchBytes), "1048576 (1 MiB) or more")
	}
	f.between("limits.answerTimeout", l.AnswerTimeout, time.Second, 10*time.Minute)
	f.between("limits.wait", l.Wait, time.Millisecond, time.Minute)
}

func (f *faults) address(path, address string) {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		f.add(path, fmt.Sprintf("%q is no address", address), "HOST:PORT or :PORT")
	} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		f.add(path, fmt.Sprintf("%q has no valid port", address), "a port from 0 to 65535")
	}
}

func (f *faults) between(path string, d *metav1.Duration, least, most time.Duration) {
	if d.Duration < least || d.Duration > most {
		f.add(path, fmt.Sprintf("is %v", d.Duration), fmt.Sprintf("%v to %v", least, most))
	}
}

func (f *faults) peer(path, name string) {
	if err := region.PeerName(name).Validate(); err != nil {
		f.add(path, fmt.Sprintf("%q is no name of a peer", name), "a DNS name in lower case, such as eu-west")
	}
}
