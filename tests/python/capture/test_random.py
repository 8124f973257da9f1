from kernelwright.capture import random


def test_has_the_values_that_cpp_has_too():
    # tests/unit/num/tensor.cpp holds the same numbers.
    assert int(random.words(7, 2, 1)[0]) == 0xBCE33ED48E94B602
    assert random.integers(7, 2, 6, -3, 1000)[5] == 206
    assert random.normal(7, 2, 1)[0] == -0.018096923828125


def test_normal_has_mean_zero_and_variance_one():
    x = random.normal(1, 0, 200000)
    assert abs(x.mean()) < 0.01 and abs(x.var() - 1) < 0.01


def test_integers_reach_both_ends_and_no_further():
    x = random.integers(3, 1, 1000, -2, 3)
    assert x.min() == -2 and x.max() == 3


def test_elements_do_not_depend_on_how_many_are_drawn():
    few, many = random.normal(5, 1, 100), random.normal(5, 1, random.CHUNK)
    assert (few == many[:100]).all()
