#!/usr/bin/env perl
# Names that prose mentions must exist: prints each that does not, as file:line. Read are the text
# files for people (names in backticks), and comments of R and C (names in backticks, and name()).
#
#   `name(...)`, name()   a function that code of the tree calls or defines, or one of R's; where
#                         the tree defines it without `...`, each `argument =` is one of its own
#   `argument = ...`      an argument of a function of the tree or of R
#   `folder/file.ext`     a file of the tree; <topic>, * and NAME stand for anything
#   `STATCL_...`          an environment variable that code reads
#   `statcl....`          an option that code reads
#   `name()` (`file.R`)   a function that this file mentions
#   `./dev task`          a task of dev
#   `name` in a comment   an identifier of the tree's code
#
# Names of other software, of examples, and those that code puts together are listed at the end.
use strict;
use warnings;

my @files = grep { -f } split /\n/, `git ls-files`;
@files = map { s{^\./}{}r } split /\n/, `find . -path ./build -prune -o -type f -print`
  unless @files;
my %file = map { $_ => 1 } @files;
my %foreign;
while (<DATA>) { $foreign{$_} = 1 for grep { length } split }

sub slurp {
  open my $in, '<', $_[0] or die "$_[0]: $!";
  local $/;
  return scalar <$in>;
}

# ---- the code -----------------------------------------------------------------------------------
my (%word, %function, %argument, %arguments_of, %option, %variable, @prose);

# The text without comments, and the comments as [line, text]; lines keep their numbers.
sub split_comments {
  my ($text, $pattern) = @_;
  my @comments;
  my $code = $text =~ s{("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])*')|$pattern}{
    if (defined $1) { $1 } else {
      my ($start, $found) = ($-[0], $&);
      push @comments, [1 + (substr($text, 0, $start) =~ tr/\n//), $found];
      $found =~ tr/\n//cdr
    }}gser;
  return ($code, \@comments);
}

# The arguments between the parentheses at the start of a text: "a, b = 1" of "(a, b = 1) ...".
sub in_parentheses {
  my ($text) = @_;
  return $text =~ /^(\((?:[^()"]|"(?:\\.|[^"\\])*"|(?1))*\))/ ? substr($1, 1, -1) : undef;
}

for my $name (@files) {
  next if $name =~ /\.(png|rds|rda|pdf|svg|csv|txt)$/ || $name =~ m{^man/|^\.ci/lint_faults};
  my $text = slurp($name);
  my $code = $text;
  my $comments = [];
  if ($name =~ /\.(R|r)$|^NAMESPACE$/) {
    ($code, $comments) = split_comments($text, qr/#[^\n]*/);
    while ($code =~ /(?:^([\w.]+) <- )?\bfunction(?=\()/gm) {
      my $of = $1;
      my $inside = in_parentheses(substr($code, pos $code, 4000)) // next;
      my @own = $inside =~ /(?:^|,)\s*([\w.]+)\s*(?==|,|$)/g;
      @argument{@own} = (1) x @own;
      $arguments_of{$of} = {map { $_ => 1 } @own} if defined $of && $name =~ m{^R/};
    }
  } elsif ($name =~ /\.(c|h|cl|def|in)$/) {
    ($code, $comments) = split_comments($text, qr{/\*.*?\*/|//[^\n]*}s);
  } elsif ($name =~ /\.(R?md)$/) {
    push @prose, [$name, $text];
    next;
  } elsif ($name =~ m{\.(sh|pl)$|^(dev|configure|cleanup)$}) {
    push @$comments, [1 + (substr($text, 0, $-[0]) =~ tr/\n//), $&] while $text =~ /^ *#.*$/gm;
    $code =~ s/^ *#.*$//gm;
  }
  $word{$_} = 1 for $code =~ /[\w.]+/g, $code =~ /\w+/g;
  $function{$_} = 1 for $code =~ /([\w.]+)\s*(?=\(|<-|=\s*function)/g, $code =~ /"([\w.]+)"/g;
  $option{$_} = 1 for $code =~ /"(statcl\.\w+)"/g;
  $variable{$_} = 1 for $code =~ /\b(STATCL_\w+)/g;
  push @prose, [$name, $comments] if @$comments && $name ne '.ci/named.pl';
}
my %task = map { $_ => 1 } slurp('dev') =~ /^task_(\w+)/gm;

# R's own functions and their arguments.
for (split /\n/, `Rscript --vanilla -e 'options(warn = -1); for (p in rownames(installed.packages(priority = "high"))) for (n in ls(asNamespace(p), all.names = TRUE)) { f <- get(n, asNamespace(p)); if (is.function(f)) cat(n, names(formals(args(f))), "\\n") }'`) {
  my ($of, @own) = split;
  $function{$of} = 1;
  delete $arguments_of{$of}; # a generic's methods differ
  @argument{@own} = (1) x @own;
}

# ---- what prose names ---------------------------------------------------------------------------
sub pattern_of {
  my ($path) = @_;
  my $pattern = quotemeta $path;
  $pattern =~ s/\\<[\w\\-]+\\>|\\\*|\b(?:NAME|TOPIC|TASK)\b/[^\/]*/g;
  $pattern =~ s/\\\{([^}]*)\\\}/'(?:' . ($1 =~ s{\\,}{|}gr) . ')'/ge;
  return $pattern;
}

sub has_path {
  my ($path, $from) = @_;
  $path =~ s{^\./|/$}{}g;
  return 1 if $path =~ m{^(build|demo-output|shared|\.\.)(/|$)} || $path =~ m{^(~|/)};
  my $pattern = pattern_of($path);
  return scalar grep { m{(^|/)$pattern(/|$)} } @files;
}

# Why a name in backticks is wrong, or ''.
sub fault {
  my ($name, $in_comment) = @_;
  return '' if $foreign{$name};
  $name =~ s/^statcl_(error|warning)_(?=\w+$)//;
  if ($name =~ m{^\./dev(?: (\w+))?}) { return defined $1 && !$task{$1} ? 'no task of dev' : '' }
  for my $n ($name =~ /\b(STATCL_[A-Z_0-9]+)\b/g) {
    return 'an environment variable that nothing reads' if !$variable{$n} && $n !~ /_$/;
  }
  for my $n ($name =~ /\b(statcl\.[a-z]\w*)\b/g) {
    return 'an option that nothing reads'
      if !$option{$n} && $name !~ m{[/-]|\.(R|Rmd|h|c|css|csv|Rcheck|gz)\b};
  }
  if ($name =~ m{^[\w./<>*{},-]+$} && $name =~ m{\.(R|c|h|cl|def|sh|pl|md|Rmd|csv|txt|py|in|svg)$|^(R|src|inst|tests|bench|\.ci|vignettes)/}) {
    return has_path($name) ? '' : 'no file of the tree';
  }
  if ($name =~ /^([A-Za-z.][\w.]*)\(/) {
    my $of = $1;
    return '' if $foreign{"$of()"};
    return 'no function' unless $function{$of};
    my $own = $arguments_of{$of} or return '';
    return '' if $own->{'...'};
    my $inside = in_parentheses(substr($name, length $of)) // return '';
    1 while $inside =~ s/"[^"]*"|[(\[{][^()\[\]{}]*[)\]}]//g; # inner calls have other arguments
    for my $a ($inside =~ /(?:^|,)\s*([A-Za-z.][\w.]*)\s*=(?!=)/g) {
      return "no argument $a" unless $own->{$a};
    }
    return '';
  }
  if ($name =~ /^([A-Za-z.][\w.]*) =(?!=)/) { return $foreign{$1} || $argument{$1} || $word{$1} ? '' : 'no argument' }
  if ($name =~ /^[A-Za-z.][\w.]*$/) { return $word{$name} ? '' : 'no name of the code' }
  return '';
}

my @faults;
sub look {
  my ($file, $line, $text, $in_comment) = @_;
  while ($text =~ /(?<!`)`([^`]+)`(?!`)/g) {
    my ($name, $at) = ($1, $line + (substr($text, 0, $-[0]) =~ tr/\n//));
    $name =~ s/\s*\n\s*(?:#'?|\*)?\s*/ /g;
    my $why = fault($name, $in_comment);
    push @faults, "$file:$at: `$name`: $why" if $why;
  }
  # `name()` (`folder/file.R`)
  while ($text =~ /`([\w.]+)\(\)`\s+(?:\(|in\s+)`([\w.\/-]+\.[Rch])`/g) {
    my ($name, $path, $at) = ($1, $2, $line + (substr($text, 0, $-[0]) =~ tr/\n//));
    next if grep { m{(^|/)\Q$path\E$} && slurp($_) =~ /\b\Q$name\E\b/ } @files;
    push @faults, "$file:$at: `$name()`: not in `$path`";
  }
  while ($text =~ m{(?<![\w./`:<*-])((?:[\w.-]+/)+[\w-]+\.(?:c|h|cl|def|R|sh|pl|Rmd|md))\b(?!\w)}g) {
    my ($path, $at) = ($1, $line + (substr($text, 0, $-[0]) =~ tr/\n//));
    push @faults, "$file:$at: $path: no file of the tree" unless has_path($path) || $foreign{$path};
  }
  while ($text =~ /\b(STATCL_[A-Z0-9_]*[A-Z0-9])\b(?!_)/g) {
    my ($name, $at) = ($1, $line + (substr($text, 0, $-[0]) =~ tr/\n//));
    push @faults, "$file:$at: $name: nothing reads it" unless $variable{$name};
  }
  return unless $in_comment;
  while ($text =~ /(?<![\w.`:\$@\\])([A-Za-z][\w.]*)\(\)/g) {
    my ($name, $at) = ($1, $line + (substr($text, 0, $-[0]) =~ tr/\n//));
    push @faults, "$file:$at: $name(): no function"
      unless $function{$name} || $foreign{"$name()"};
  }
}

for (@prose) {
  my ($file, $what) = @$_;
  if (ref $what) {
    look($file, @$_, 1) for @{joined($what)};
  } else {
    $what =~ s/^(```|    ).*?(?:^```$)/$& =~ tr|\n||cdr/gmse if $what =~ /^```/m;
    look($file, 1, $what, 0);
  }
}
print "$_\n" for sort @faults;
exit(@faults > 0);

# Comments of successive lines are one text: a name in backticks may be broken.
sub joined {
  my ($comments) = @_;
  my @all;
  for (@$comments) {
    my ($line, $text) = @$_;
    if (@all && $line == $all[-1][0] + 1 + ($all[-1][1] =~ tr/\n//) && $text =~ /^#/) {
      $all[-1][1] .= "\n$text";
    } else {
      push @all, [$line, $text];
    }
  }
  return \@all;
}
__END__
bread() waldtest() dgmrf() dlgamma() dnbinom_robust() tmbstan() mleCRNGP() llikGP() aGP()
AdditiveKernel matern_scaledim FixedNoise... lengthscale_prior LeaveOneOut... BernoulliLikelihood
StudentTLikelihood IndexKernel MultitaskKernel matern_sphere get_fantasy_model()
normalize sample_prior save_pars stanvars autocor data2 skew_normal_lcdf nlschools
iter_sampling iter_warmup opencl_ids dpotri qraux libclblast1
load.level own.level lengthscale.temperature lengthscale2.temperature
scl_k_gemm_nt src/ops/commutator.c FOLDER CL/cl.h parallel_chains
