// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples has the arguments of each command's examples, by the path of the command. An example without the flags that
// name peers takes them from the configuration in use.
func examples() map[string][]string {
	const peers, config = " --kubeconfig eu=eu.kubeconfig --kubeconfig us=us.kubeconfig", " --config peers.yaml"
	const id = "0mq3z5k7-6f2c41d09b7e"
	return map[string][]string{
		"account add":            {"-f loodse.yaml" + config, "-f loodse.yaml --dry-run" + config},
		"account adopt":          {"loodse --peer eu" + config},
		"account compare":        {"loodse" + config},
		"account list":           {config, "-o yaml" + config},
		"account move":           {"loodse --to us" + config},
		"account release":        {"loodse" + config},
		"account remove":         {"loodse" + config, "loodse --ignore-not-found" + config},
		"account update":         {"-f loodse.yaml" + config},
		"audit":                  {config, "--repair" + config, "--only servicecluster/loodse/eu-west-1" + config},
		"cluster manifests":      {""},
		"cluster token":          {"edge --upstream plane.kubeconfig", "edge --upstream plane.kubeconfig --lifetime 10m --server https://plane.example.com:6443"},
		"get":                    {"configmaps" + config, "couchdbs.eu-west-1.loodse main -n team" + config, "pods -l app=web" + config},
		"install-crds":           {peers, "--group kubecarrier.io" + config},
		"operation abort":        {id + config},
		"operation explain":      {id + config, "servicecluster/loodse/eu-west-1" + config, "account/loodse" + config},
		"operation list":         {config, "--peers" + config},
		"operation resume":       {id + config},
		"peer comeback":          {"eu" + config},
		"peer force-remove":      {"eu --by alice --i-know-it-never-returns" + config},
		"peer init":              {peers},
		"peer join":              {"ap" + config},
		"peer leave":             {"ap" + config},
		"peers":                  {peers, " --context eu=prod-eu --context us=prod-us", "-o yaml" + config, "--check" + config},
		"placement preview":      {"-f policy.yaml --upstream plane.kubeconfig", "-f policy.yaml --upstream plane.kubeconfig --workloads deployments.apps,statefulsets.apps -o json"},
		"rbac":                   {"", "--install", "--as alice --as-group dev", "--loops all --central", "--sync syncer --target edge"},
		"route":                  {"eu-west-1.loodse" + config},
		"doctor":                 {config, "--context eu=prod-eu --context us=prod-us"},
		"explain":                {"eu-west-1.loodse" + config},
		"servicecluster add":     {"eu-west-1 -n loodse --target eu -f eu-west-1.yaml" + config},
		"servicecluster adopt":   {"eu-west-1 -n loodse --peer eu" + config},
		"servicecluster list":    {config, "-n loodse --all" + config},
		"servicecluster release": {"eu-west-1 -n loodse" + config},
		"servicecluster remove":  {"eu-west-1 -n loodse" + config},
		"version":                {"", "-o json"},
		"wal backup":             {"operations.backup"},
		"wal compact":            {""},
		"wal discard":            {id},
		"wal list":               {"", "--wal operations.db"},
		"wal recover":            {config, "--accept-loss" + config},
		"wal rescue":             {config, "--identity alice@laptop" + config},
		"wal salvage":            {"operations.new"},
		"wal verify":             {""},
		"watch":                  {"configmaps" + config, "couchdbs.eu-west-1.loodse -n team" + config},
	}
}

// illustrate gives c and the commands below it their examples, with the name under which the program runs.
func (s *session) illustrate(c *cobra.Command, all map[string][]string) {
	path := strings.TrimPrefix(c.CommandPath(), c.Root().CommandPath()+" ")
	var lines []string
	for _, arguments := range all[path] {
		lines = append(lines, strings.TrimRight("  "+s.program+" "+path+" "+strings.TrimSpace(arguments), " "))
	}
	c.Example = strings.Join(lines, "\n")
	for _, below := range c.Commands() {
		s.illustrate(below, all)
	}
}
