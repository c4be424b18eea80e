// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/atoll-dev/atoll/region"
)

// fromContexts returns the peers that the values of --context name: NAME=CONTEXT, or NAME if the
// context has the name of the peer. The contexts come from the user's own kubeconfig. The user trusts
// it, as kubectl does: it may run credential plugins and read other files.
func (s *session) fromContexts(flags []string) ([]region.Peer, error) {
	listed := make([]region.Peer, 0, len(flags))
	for _, flag := range flags {
		name, context, ok := strings.Cut(flag, "=")
		if !ok {
			context = name
		}
		if err := region.PeerName(name).Validate(); err != nil || context == "" {
			return nil, badInput("write --context NAME=CONTEXT", "--context %q names no peer and context", flag)
		}
		credentials, err := s.ofContext(context)
		if err != nil {
			return nil, badInput("kubectl config get-contexts shows the contexts", "peer %s: context %s: %w", name, context, err)
		}
		listed = append(listed, region.Peer{Name: region.PeerName(name), Credentials: credentials})
	}
	return listed, nil
}

// ofContext returns the credentials of one context of the user's kubeconfig.
func (s *session) ofContext(context string) (region.Credentials, error) {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(s.loadingRules(), overrides).ClientConfig()
	if err != nil {
		return region.Credentials{}, err
	}
	return region.FromConfig(config)
}

// loadingRules returns the rules of kubectl: the files of KUBECONFIG, else ~/.kube/config.
func (s *session) loadingRules() *clientcmd.ClientConfigLoadingRules {
	files := filepath.SplitList(s.getenv(clientcmd.RecommendedConfigPathEnvVar))
	files = slices.DeleteFunc(files, func(file string) bool { return file == "" })
	if len(files) == 0 {
		files = []string{filepath.Join(s.getenv("HOME"), clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)}
	}
	return &clientcmd.ClientConfigLoadingRules{Precedence: files}
}

// contextNames returns the contexts of the user's kubeconfig, for shell completion.
func (s *session) contextNames() []string {
	config, err := s.loadingRules().Load()
	if err != nil {
		return nil
	}
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
