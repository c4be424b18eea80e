// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/region"
)

// Upstream is the name of the API server to which the clusters are attached.
const Upstream = "upstream"

// Names returns the names of all API servers, the upstream first.
func Names() []string { return []string{Upstream, "cluster-1", "cluster-2", "cluster-3"} }

// Kubeconfig is the kubeconfig of an API server.
type Kubeconfig struct {
	Name string
	Data []byte
}

// Kubeconfigs is the value of a flag that is given once for each API server. An empty one means API servers in memory.
type Kubeconfigs []Kubeconfig

// String implements flag.Value. It returns the empty default.
func (k *Kubeconfigs) String() string { return "" }

// Set parses one NAME=PATH and reads the file.
func (k *Kubeconfigs) Set(value string) error {
	name, path, found := strings.Cut(value, "=")
	if !found || name == "" || path == "" {
		return errors.New("want NAME=PATH, upstream or the name of a cluster and the path of its kubeconfig")
	}
	if !slices.Contains(Names(), name) {
		return fmt.Errorf("the name %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	if slices.ContainsFunc(*k, func(other Kubeconfig) bool { return other.Name == name }) {
		return fmt.Errorf("%s is given twice: each needs a name of its own", name)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if _, err := region.ParseKubeconfig(data, region.Trust{}); err != nil {
		return err
	}
	*k = append(*k, Kubeconfig{name, data})
	return nil
}

// Complete sorts the kubeconfigs by name. It returns an error if some are given, but not all.
func (k *Kubeconfigs) Complete() error {
	slices.SortFunc(*k, func(a, b Kubeconfig) int { return strings.Compare(a.Name, b.Name) })
	if n := len(*k); n > 0 && n < len(Names()) {
		return fmt.Errorf("flag -kubeconfig: %d are given: want one each of %s", n, strings.Join(Names(), ", "))
	}
	return nil
}
