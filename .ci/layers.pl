#!/usr/bin/env perl
# The layers of src/, from the table in CONTRIBUTING.md ("| `src/base` | ... | `base`, ... |"): every
# include, and every use of a function or table (scl_..., r_...) of another file, goes to the same
# folder or to one that the table names; includes make no circle of files. Prints each violation.
# With the argument "circles", as lint has it, it also prints files whose uses of each other make one.
use strict;
use warnings;

# ---- the table: room => { rooms that it may use }
my %may;
open my $table, '<', 'CONTRIBUTING.md' or die $!;
while (<$table>) {
  next unless m{^\|\s*`src/([^`]+)`\s*\|.*\|([^|]*)\|\s*$};
  my ($room, $uses) = ($1, $2);
  $may{$room} = {$room => 1, map { $_ => 1 } $uses =~ /`([^`]+)`/g};
}
die "no table of layers in CONTRIBUTING.md\n" unless %may;

# The longest row that is the start of a path, or a file with a row of its own.
sub room_of {
  my ($path) = @_;
  return $path if $may{$path};
  while ($path =~ s{/[^/]*$}{}) { return $path if $may{$path} }
  return '';
}

# A row that names `engine` means all below it.
sub may_use {
  my ($room, $theirs) = @_;
  return grep { $theirs eq $_ || index($theirs, "$_/") == 0 } keys %{$may{$room}};
}

# ---- the files, without comments and strings
my (%include, %defined_in, %text);
for my $file (split ' ', `cd src && find . -name '*.[ch]' -o -name '*.def' | sed 's|^\\./||' | sort`) {
  open my $in, '<', "src/$file" or die $!;
  my $text = do { local $/; <$in> };
  push @{$include{$file}}, grep { -e "src/$_" } $text =~ /^\s*#\s*include\s*"([^"]+)"/mg;
  $text =~ s{("(?:\\.|[^"\\\n])*")|/\*.*?\*/|//[^\n]*}{$1 ? '""' : ' '}gse;
  $text{$file} = $text;
  # What begins at the first column and is no declaration, in C files.
  next unless $file =~ /\.c$/;
  while ($text =~ /^(?!static|extern|typedef|#|\s|\}).*?\b((?:scl|r)_\w+)\s*(\([^;{}]*\)\s*\{|\[[^;]*=|=)/mg) {
    $defined_in{$1} = $file;
  }
}

my @faults;
for my $file (sort keys %include) {
  my $room = room_of($file);
  push @faults, "src/$file: its folder is not in the table" if $room eq '';
  for my $other (@{$include{$file}}) {
    my $theirs = room_of($other);
    push @faults, "src/$file includes $other: $room may not use $theirs"
      unless may_use($room, $theirs);
  }
}

# ---- uses: file => { file that defines what it uses => name }
my %use;
for my $file (sort keys %text) {
  next unless $file =~ /\.c$/;
  my %seen;
  for my $name (grep { !$seen{$_}++ } $text{$file} =~ /\b((?:scl|r)_\w+)/g) {
    my $where = $defined_in{$name};
    $use{$file}{$where} = $name if defined $where && $where ne $file;
  }
}
for my $file (sort keys %use) {
  my $room = room_of($file);
  for my $other (sort keys %{$use{$file}}) {
    my $theirs = room_of($other);
    push @faults, "src/$file uses $use{$file}{$other}() of $other: $room may not use $theirs"
      unless may_use($room, $theirs);
  }
}

# ---- circles: the strongly connected files of a graph (Tarjan)
my ($count, %index, %low, @stack, %on, @circles);
sub visit {
  my ($file, $next) = @_;
  $index{$file} = $low{$file} = ++$count;
  push @stack, $file;
  $on{$file} = 1;
  for my $other ($next->($file)) {
    if (!$index{$other}) {
      visit($other, $next);
      $low{$file} = $low{$other} if $low{$other} < $low{$file};
    } elsif ($on{$other} && $index{$other} < $low{$file}) {
      $low{$file} = $index{$other};
    }
  }
  return if $low{$file} != $index{$file};
  my @circle;
  do { push @circle, pop @stack; delete $on{$circle[-1]} } until $circle[-1] eq $file;
  return if @circle == 1;
  my %in = map { $_ => 1 } @circle;
  my @edges;
  for my $from (sort @circle) {
    push @edges, map { "$from -> $_" . ($use{$from}{$_} ? " ($use{$from}{$_})" : '') } grep { $in{$_} } sort $next->($from);
  }
  push @circles, join "\n    ", scalar(@circle) . ' files', @edges;
}
sub circles {
  my ($next, @files) = @_;
  $count = 0;
  %index = %low = %on = ();
  @stack = @circles = ();
  $index{$_} || visit($_, $next) for @files;
  return @circles;
}
no warnings 'recursion';
push @faults, map { "includes in a circle: $_" }
  circles(sub { @{$include{$_[0]} || []} }, sort keys %include);
if (@ARGV && $ARGV[0] eq 'circles') {
  push @faults, map { "uses in a circle: $_" }
    circles(sub { sort keys %{$use{$_[0]} || {}} }, sort keys %use);
}
print "$_\n" for @faults;
