#!/usr/bin/perl
# Functions of C files and of kernel files that have more lines than LINES. Functions that a macro
# defines count too. Usage: function_sizes.pl LINES FILE...
use strict;
use warnings;
my $most = shift;
for my $file (@ARGV) {
  open my $in, '<', $file or die "$file: $!";
  my $text = do { local $/; <$in> };
  # Without comments, strings and the heads of macros; lines keep their numbers.
  $text =~ s{("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')|/\*.*?\*/|//[^\n]*}
            {defined $1 ? '""' : $& =~ tr/\n//cdr}gse;
  $text =~ s{^\#[ \t]*define[ \t]+\w+\([^()]*\)[ \t]*\\\n((?:.*\\\n)*.*)$}
            {my $body = $1; $body =~ s/\\$//gm; "\n$body;"}gme;
  $text =~ s{^\#(?:.*\\\n)*.*$}{$& =~ tr/\n//cdr}gme;
  my ($depth, $line, $start, $head, $name) = (0, 1, 0, '', '');
  for my $piece ($text =~ /[{};\n]|[^{};\n]+/g) {
    if ($piece eq "\n") {
      $line++;
      $head .= ' ' if $depth == 0;
    } elsif ($piece eq '{') {
      next if $depth++ > 0;
      $name = "";
      next if $head =~ /=\s*$/;
      $name = $1 if $head =~ /(\w+)(?:\(\w+\))?\s*\((?:[^()]|\([^()]*\))*\)\s*$/;
    } elsif ($piece eq '}') {
      next if --$depth > 0;
      my $lines = $line - $start + 1;
      print "$file:$start: $name, $lines lines\n" if $name ne '' && $lines > $most;
      ($head, $start) = ('', 0);
    } elsif ($depth == 0 && $piece eq ';') {
      ($head, $start) = ('', 0);
    } elsif ($depth == 0) {
      $start = $line if $head !~ /\S/ && $piece =~ /\S/;
      $head .= $piece;
    }
  }
}
