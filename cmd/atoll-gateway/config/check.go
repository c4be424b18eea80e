// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/configfile"
	"github.com/atoll-dev/atoll/region"
)

// check returns a line for each fault.
func (c *Configuration) check() configfile.Faults {
	var f configfile.Faults
	f.Type(c.TypeMeta, APIVersion, Kind)
	c.Serving.check(&f)
	c.Source.check(&f)
	c.Authentication.check(&f)
	c.checkCatalog(&f)
	if c.Operators != nil && c.Operators.Group == "" {
		f.Add("operators.group", "is missing", "the name of a group; or leave operators out")
	}
	if c.Fanout != nil && c.Fanout.LogFile == "" {
		f.Add("fanout.logFile", "is missing", "the path of a file that survives restarts; or leave fanout out")
	}
	c.Limits.check(&f)
	f.Log(c.Log.Format, c.Log.Level)
	f.Address("health.address", c.Health.Address)
	if c.Health.Address == c.Serving.Address && !strings.HasSuffix(c.Health.Address, ":0") {
		f.Add("health.address", "is the address of serving.address", "another port")
	}
	f.Between("drain.delay", c.Drain.Delay, 0, 10*time.Minute)
	f.Between("drain.timeout", c.Drain.Timeout, time.Second, time.Hour)
	return f
}

func (s *Serving) check(f *configfile.Faults) {
	f.Address("serving.address", s.Address)
	if s.CertificateFile == "" {
		f.Add("serving.certificateFile", "is missing", "the path of a certificate in PEM")
	}
	if s.KeyFile == "" {
		f.Add("serving.keyFile", "is missing", "the path of the certificate's key in PEM")
	}
	for i, origin := range s.AllowedOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Contains(u.Host, "*") || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			f.Add(fmt.Sprintf("serving.allowedOrigins[%d]", i), fmt.Sprintf("%q is no origin", origin), "https://HOST[:PORT]")
		}
	}
}

func (s *Source) check(f *configfile.Faults) {
	given := 0
	for _, set := range []bool{s.File != "", s.Directory != "", s.Central != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		f.Add("source", fmt.Sprintf("%d of its fields file, directory and central are set", given), "exactly one")
	}
	f.Between("source.cacheWait", s.CacheWait, time.Second, 10*time.Minute)
	f.Between("source.probeInterval", s.ProbeInterval, time.Second, 10*time.Minute)
	f.Programs("source.execPlugins", s.ExecPlugins)
}

func (c *Configuration) checkCatalog(f *configfile.Faults) {
	if len(c.CatalogResources) > 32 {
		f.Add("catalogResources", fmt.Sprintf("has %d types", len(c.CatalogResources)), "at most 32")
	}
	if _, bad := c.Catalog(); bad >= 0 {
		f.Add(fmt.Sprintf("catalogResources[%d]", bad), fmt.Sprintf("%q is no type", c.CatalogResources[bad]),
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

func (l *Limits) check(f *configfile.Faults) {
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
			f.Add(field.path, fmt.Sprintf("is %d", field.value), fmt.Sprintf("%d or more", field.least))
		}
	}
	if l.RegionQPS < 0 && l.RegionQPS != -1 {
		f.Add("limits.regionQPS", fmt.Sprintf("is %v", l.RegionQPS), "requests per second; or leave it out")
	}
	if l.SharedWatchBytes < 1<<20 {
		f.Add("limits.sharedWatchBytes", fmt.Sprintf("is %d", l.SharedWatchBytes), "1048576 (1 MiB) or more")
	}
	f.Between("limits.answerTimeout", l.AnswerTimeout, time.Second, 10*time.Minute)
	f.Between("limits.wait", l.Wait, time.Millisecond, time.Minute)
}

func checkPeer(f *configfile.Faults, path, name string) {
	if err := region.PeerName(name).Validate(); err != nil {
		f.Add(path, fmt.Sprintf("%q is no name of a peer", name), "a DNS name in lower case, such as eu-west")
	}
}
